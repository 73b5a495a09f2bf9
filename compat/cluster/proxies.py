"""Makes the traffic of a cluster bypass proxies, which drop it silently."""

from __future__ import annotations

import os
from typing import Callable, Iterable, Mapping

_PROXIES = {"http_proxy", "https_proxy", "grpc_proxy", "all_proxy"}


def found(environ: Mapping[str, str]) -> list[str]:
    """Returns the variables that name a proxy, by which gRPC would send a cluster's traffic."""
    return sorted(name for name in environ if name.lower() in _PROXIES and environ[name])


def bypass(environ: Mapping[str, str], hosts: Iterable[str]) -> dict[str, str]:
    """Returns the variables to set in `environ` so that gRPC reaches `hosts` directly, often {}.

    gRPC sends a cluster's traffic through proxies, even on loopback. TensorFlow 1.15 reads only
    no_proxy, newer releases prefer no_grpc_proxy if it is set, and none reads NO_PROXY.
    """
    if not found(environ):
        return {}
    names = ["no_proxy"] + ["no_grpc_proxy"] * bool(environ.get("no_grpc_proxy"))
    added = {}
    for name in names:
        before = environ.get(name) or environ.get(name.upper()) or ""
        kept = [host for host in before.split(",") if host]
        after = kept + sorted(set(hosts) - set(kept))
        if after != kept or not environ.get(name):
            added[name] = ",".join(after)
    return added


def go_past(hosts: Iterable[str], say: Callable[[str], object] = print) -> None:
    """Makes gRPC bypass proxies for `hosts` in this process; logs it if a proxy was set."""
    added = bypass(os.environ, hosts)
    if added:
        say("proxies are set; what the tasks send each other goes past them (no_proxy)")
        os.environ.update(added)
