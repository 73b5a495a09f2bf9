"""Checks that a cluster on other machines is allowed: its servers trust every client.

Example:
  >>> check_allowed(["127.0.0.1", "pc-01"], False)
  UserError: host pc-01 is beyond loopback: servers of TensorFlow have no password ...
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Callable, Iterable

from compat.cluster.address import split_address
from compat.cluster.spec import ClusterSpec, all_tasks
from compat.errors import UserError

_TRUST = (
    "servers of TensorFlow have no password and no encryption, and whoever reaches a port runs any "
    "graph with this user's rights"
)


def check_allowed(
    hosts: Iterable[str],
    allowed: bool,
    *,
    remedy: str = "add --allow_network",
    say: Callable[[str], object] | None = None,
) -> None:
    """Sees that a cluster is on this machine, or that the user has said that it need not be.

    Args:
      hosts: of the cluster, as `cluster_hosts` gives them.
      allowed: whether the user has said so.
      remedy: how to say it, for the message.
      say: told what it means, where it is allowed and needed.

    Raises:
      UserError: a host is not loopback, and that was not allowed.
    """
    if allowed:
        # Nothing is looked up: names may get their addresses only while the tasks start.
        beyond = next((host for host in hosts if not is_written_loopback(host)), None)
        if beyond is not None and say is not None:
            say(f"hosts such as {beyond} are on a network: {_TRUST} (docs/security.md)")
        return
    beyond = next((host for host in hosts if not is_loopback(host)), None)
    if beyond is not None:
        raise UserError(
            f"host {beyond} is beyond loopback: {_TRUST}; if you trust all who reach its network, "
            f"{remedy} (docs/security.md)"
        )


def cluster_hosts(cluster: ClusterSpec) -> list[str]:
    """Returns the hosts of a cluster, each once, by job and index; IPv6 without brackets."""
    return list(dict.fromkeys(host for host, _ in _places(cluster)))


def cluster_ports(cluster: ClusterSpec) -> set[int]:
    """Returns the ports of a cluster, whichever their hosts."""
    return {port for _, port in _places(cluster)}


def _places(cluster: ClusterSpec) -> list[tuple[str, int]]:
    tasks = all_tasks(cluster)
    return [split_address(cluster.address_of(task), any_port=True) for task in tasks]


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its loopback: all its addresses are 127.0.0.0/8 or ::1.

    A name that cannot be resolved, now, is not.
    """
    if is_written_loopback(host):
        return True
    try:
        found = socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return False
    return all(_is_loopback_address(str(entry[4][0])) for entry in found)


def is_written_loopback(host: str) -> bool:
    """Whether a host is this machine's loopback by its spelling; nothing is looked up."""
    return host.lower() == "localhost" or _is_loopback_address(host)


def _is_loopback_address(text: str) -> bool:
    try:
        return ipaddress.ip_address(text.partition("%")[0]).is_loopback
    except ValueError:
        return False
