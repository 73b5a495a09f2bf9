"""Addresses and folders that a script holds as text."""

from __future__ import annotations

import ast
import re
from typing import Iterator, NamedTuple

from compat.cluster.address import split_address
from compat.errors import UserError
from compat.scripts.checking import literals
from compat.scripts.checking.findings import FOLDER, HOST, Kind

# Folders of a person or a machine. `/train` and `/job:ps` are parts of TensorFlow's own names.
_FOLDER = re.compile(
    r"/(tmp|mnt)(/\S*)?|/(data|datasets|home|media|nfs|root|scratch|srv|var|work|Users)/\S*"
    r"|~/\S*|[A-Z]:[\\/]\S*"
)
_SCHEME = "grpc://"
_LOCAL = re.compile(r"localhost|[0-9.]+|[0-9a-f:]*::[0-9a-f:]*")


class Place(NamedTuple):
    """A text in a script that is good on some machines only.

    Attributes:
      kind: `HOST` or `FOLDER`.
      text: as the script has it.
      node: where.
      message: a sentence.
    """

    kind: Kind
    text: str
    node: ast.AST
    message: str


def find(tree: ast.Module) -> Iterator[Place]:
    """Yields the addresses and folders among the constants of a program."""
    rest: list[tuple[ast.AST, str]] = [(tree, "")]
    while rest:
        node, flag = rest.pop()
        text = literals.text(node)
        if text and is_addresses(text):
            yield Place(HOST, text, node, _of_addresses(text, flag))
        elif text and _FOLDER.fullmatch(text):
            yield Place(FOLDER, text, node, _of_folder(text, flag))
        if isinstance(node, ast.Expr) and literals.text(node.value):
            continue  # A docstring.
        if isinstance(node, ast.Call):
            flag = _defined_flag(node) or flag
        rest.extend((child, flag) for child in ast.iter_child_nodes(node))


def is_addresses(text: str) -> bool:
    """Whether a text is "host:port", one or many with commas; "conv1:0" is a tensor."""
    addresses = [address.strip() for address in text.split(",") if address.strip()]
    return bool(addresses) and all(map(_is_address, addresses))


def _is_address(text: str) -> bool:
    try:
        host, port = split_address(_plain(text))
    except UserError:
        return False
    return port >= 1024 or bool(_LOCAL.fullmatch(host))


def _plain(address: str) -> str:
    """Returns an address without the scheme that sessions take."""
    address = address.strip()
    return address[len(_SCHEME) :] if address.startswith(_SCHEME) else address


def _defined_flag(call: ast.Call) -> str:
    """Returns the name of the flag that a call defines, or ""."""
    function = literals.dotted(call.func).rpartition(".")[2]
    if not call.args or not (function.startswith("DEFINE_") or function == "add_argument"):
        return ""
    long = [text for text in map(literals.text, call.args) if len(text.lstrip("-")) > 1]
    return long[0].lstrip("-") if long else ""


def _of_addresses(text: str, flag: str) -> str:
    first = _plain(text.split(",")[0])
    if flag:
        return (
            f"{text!r} is the default of a flag; say --{flag}=... to the script, or run its "
            "cluster on this machine by compat run --local"
        )
    return (
        f"{text!r} is fixed in the script; compat run --hosts {first}=HOST:PORT puts another in "
        "its place, --local runs the cluster on this machine"
    )


def _of_folder(text: str, flag: str) -> str:
    if flag:
        return f"{text!r} is the default of a flag; say --{flag}=... where it is elsewhere"
    return f"{text!r} is fixed in the script; make it a flag, or see that each machine has it"
