"""Parses addresses of tasks: "host:port", with a host name, an IPv4 or an [IPv6] address."""

from __future__ import annotations

import ipaddress
import re
import reprlib

from compat.errors import UserError, UserTypeError

# RFC 1123 allows no underscores in host names, but names of compose services have them.
_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
# May end in the interface of a link-local address, for which Python accepts any text.
_IPV6 = re.compile(r"[0-9A-Fa-f:.]+(%[A-Za-z0-9_.-]+)?")
_WRITE = "write host:port, as in localhost:2222"


def split_address(address: str, any_port: bool = False) -> tuple[str, int]:
    """Returns host and port of `address`: ("::1", 2222) of "[::1]:2222".

    With `any_port` the port may be 0, for which the system chooses a port.
    """
    if not isinstance(address, str):
        raise UserTypeError(f"address {reprlib.repr(address)} is not text; {_WRITE}")
    if not address.strip():
        raise UserError(f"address {address!r} is empty; {_WRITE}")
    if "://" in address:
        raise UserError(f"address {address!r} is a URL; {_WRITE}")
    host, colon, port = address.rpartition(":")
    if not colon or port.endswith("]"):
        raise UserError(f"address {address!r} has no port; {_WRITE}")
    # Not `isdigit`, nor `int` alone: both take digits of other scripts, `int` also "+1" and "1_0".
    if not re.fullmatch("[0-9]{1,9}", port):
        raise UserError(f"port {port!r} of {address!r} is not a number; use one from 1 to 65535")
    if not (0 if any_port else 1) <= int(port) <= 65535:
        raise UserError(f"port {port} of {address!r} is out of range; use one from 1 to 65535")
    return _host(host, address), int(port)


def _host(host: str, address: str) -> str:
    """Returns `host` without brackets, or raises `UserError` if it cannot be a host."""
    bracketed = host.startswith("[") and host.endswith("]")
    if ":" in host and not bracketed:
        raise UserError(f"host {host!r} of {address!r} has a colon; write IPv6 as [::1]:2222")
    try:
        if bracketed and not _IPV6.fullmatch(host[1:-1]):
            raise ValueError(host)
        if bracketed:
            return str(ipaddress.IPv6Address(host[1:-1]))
        if re.fullmatch("[0-9.]+", host):
            return str(ipaddress.IPv4Address(host))
    except ValueError:
        raise UserError(f"host {host!r} of {address!r} is not an IP address; correct it") from None
    if not _HOST_NAME.fullmatch(host):
        raise UserError(
            f"host {host!r} of {address!r} is not a host name; write host:port as in localhost:2222"
        )
    return host
