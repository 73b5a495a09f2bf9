"""Addresses that are fixed in the script."""

from __future__ import annotations

import re
from typing import Iterator

from compat.cluster.address import split_address
from compat.errors import UserError
from compat.scripts.rules.constants import strings
from compat.scripts.rules.findings import HOST, Finding
from compat.scripts.rules.rule import Found, Rule, Script

_SCHEME = "grpc://"
_LOCAL = re.compile(r"localhost|[0-9.]+|[0-9a-f:]*::[0-9a-f:]*")


def _find(script: Script) -> Iterator[Found]:
    for part in script.parts:
        for node, text, flag in strings(part.tree):
            if is_addresses(text):
                finding = Finding("hosts", HOST, text, _of_addresses(text, flag))
                yield Found(part.number, node, text, finding)


def is_addresses(text: str) -> bool:
    """Whether a string is a comma-separated list of "host:port"; "conv1:0" is a tensor."""
    addresses = [address.strip() for address in text.split(",") if address.strip()]
    return bool(addresses) and all(map(_is_address, addresses))


def _is_address(text: str) -> bool:
    try:
        host, port = split_address(_plain(text))
    except UserError:
        return False
    return port >= 1024 or bool(_LOCAL.fullmatch(host))


def _plain(address: str) -> str:
    """Returns an address without the scheme of session targets."""
    address = address.strip()
    return address[len(_SCHEME) :] if address.startswith(_SCHEME) else address


def _of_addresses(text: str, flag: str) -> str:
    first = _plain(text.split(",")[0])
    if flag:
        return (
            f"{text!r} is the default of a flag; pass --{flag}=... to the script, or run its "
            "cluster on this machine with compat run --local"
        )
    return (
        f"{text!r} is fixed in the script; compat run --hosts {first}=HOST:PORT replaces it, "
        "--local runs the cluster on this machine"
    )


RULE = Rule(
    "hosts",
    "",
    "addresses that are fixed in the script",
    'tf.train.ClusterSpec({"ps": ["pc-01:2222"]})',
    find=_find,
)
