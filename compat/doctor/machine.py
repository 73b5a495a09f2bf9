"""Checks the requirements of a cluster on this machine: proxies, GPUs, ports and cores."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from pathlib import Path
from typing import Any, Iterator, Mapping

from compat.cluster import ports, proxies
from compat.cluster.address import split_address
from compat.doctor.packages import Finding
from compat.errors import reason_of

_CONNECT_SECS = 5
# The command that makes ports available or reachable, by error.
_MENDS = {
    errno.EADDRINUSE: "sudo sysctl net.ipv4.ip_local_port_range='32768 60999'",
    errno.EADDRNOTAVAIL: "sudo ip link set lo up",
    errno.ENETUNREACH: "sudo ip link set lo up",
}
# EACCES, EPERM, refusal or timeout: on one machine most likely a firewall.
_MEND_ELSE = "sudo iptables -I INPUT -i lo -j ACCEPT && sudo iptables -I OUTPUT -o lo -j ACCEPT"
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_CGROUP = Path("/sys/fs/cgroup")
# Control groups of version 2 have the quota in one file, those of version 1 in two.
_QUOTAS = (["cpu.max"], ["cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"])


def findings(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """Yields a finding each for the proxies, the GPUs, the ports and the cores of this machine.

    `facts` has the number of GPUs that TensorFlow sees; it is empty if TensorFlow does not load.
    """
    variables = ", ".join(proxies.found(os.environ))
    yield Finding(
        "proxies", f"{variables}; clusters of compat bypass them" if variables else "none"
    )
    if facts:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        limit = "" if visible is None else f", CUDA_VISIBLE_DEVICES={visible}"
        yield Finding("GPUs", f"{facts['gpus']} seen by TensorFlow{limit}")
    else:
        yield Finding("GPUs", "unknown, since TensorFlow does not load")
    yield _ports()
    cores = os.cpu_count() or 1
    # macOS lacks this function.
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    quota = _quota()
    limit = "" if quota is None else f", a quota of {quota:g}"
    yield Finding("cores", f"{usable} usable of {cores}{limit}")


def _ports() -> Finding:
    try:
        with ports.reserve() as reservation:
            address = reservation.address
        with ports.answered(address):
            socket.create_connection(split_address(address), _CONNECT_SECS).close()
    except OSError as error:
        reason = reason_of(error)
        return Finding("ports", f"none available on 127.0.0.1: {reason}", remedy(error))
    text = "available and reachable on 127.0.0.1"
    if _EPHEMERAL.exists():  # Only Linux has this file.
        text += ", ephemeral {} to {}".format(*_EPHEMERAL.read_text("ascii").split())
    return Finding("ports", text)


def remedy(error: OSError) -> str:
    """Returns the command that fixes an error of a local port."""
    return _MENDS.get(error.errno or 0, _MEND_ELSE)


def _quota() -> float | None:
    """Returns the CPU quota of the container in cores; None if there is no limit."""
    for files in _QUOTAS:
        with contextlib.suppress(OSError):
            text = " ".join((_CGROUP / file).read_text("ascii") for file in files)
            quota, period = text.split()
            return None if quota in ("max", "-1") else int(quota) / int(period)
    return None
