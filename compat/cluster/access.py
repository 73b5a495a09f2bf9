"""Checks that a cluster on other machines is allowed, since its servers trust every client."""

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
    """Raises a `UserError` for a host that is not loopback; if `allowed`, logs the risk instead."""
    # If hosts are allowed, do not resolve names, which may get their addresses later.
    is_here = is_written_loopback if allowed else is_loopback
    beyond = next((host for host in hosts if not is_here(host)), None)
    if beyond is None:
        return
    if not allowed:
        raise UserError(
            f"host {beyond} is beyond loopback: {_TRUST}; if you trust all who reach its network, "
            f"{remedy} (docs/security.md)"
        )
    if say is not None:
        say(f"hosts such as {beyond} are on a network: {_TRUST} (docs/security.md)")


def cluster_hosts(cluster: ClusterSpec) -> list[str]:
    """Returns the hosts of a cluster, each once, in the order of tasks; IPv6 without brackets."""
    return list(dict.fromkeys(host for host, _ in _places(cluster)))


def cluster_ports(cluster: ClusterSpec) -> set[int]:
    """Returns the ports of all tasks of a cluster."""
    return {port for _, port in _places(cluster)}


def _places(cluster: ClusterSpec) -> list[tuple[str, int]]:
    addresses = map(cluster.address_of, all_tasks(cluster))
    return [split_address(address, any_port=True) for address in addresses]


def is_loopback(host: str) -> bool:
    """Whether all addresses of a host are 127.0.0.0/8 or ::1; an unknown name is not loopback."""
    if is_written_loopback(host):
        return True
    try:
        infos = socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return False
    return all(is_written_loopback(str(entry[4][0])) for entry in infos)


def is_written_loopback(host: str) -> bool:
    """Whether a host is written as this machine's loopback; does not resolve names."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host.lower() == "localhost"
