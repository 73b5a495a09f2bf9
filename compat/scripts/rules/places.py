"""Rules for addresses and paths that are fixed in a script, and may be of another machine."""

from __future__ import annotations

import ast
import re
from typing import Iterator

from compat.cluster.address import split_address
from compat.errors import UserError
from compat.scripts.reading import literals
from compat.scripts.reading.program import Program
from compat.scripts.rules.rule import FOLDER, HOST, Finding, Found, Rule

_SCHEME = "grpc://"
_LOCAL = re.compile(r"localhost|[0-9.]+|[0-9a-f:]*::[0-9a-f:]*")
# Folders of a user or a machine. `/train` and `/job:ps` are parts of TensorFlow names.
_FOLDER = re.compile(
    r"/(tmp|mnt)(/\S*)?|/(data|datasets|home|media|nfs|root|scratch|srv|var|work|Users)/\S*"
    r"|~/\S*|[A-Z]:[\\/]\S*"
)


def _find_hosts(program: Program) -> Iterator[Found]:
    for node, text, flag in _strings(program):
        if _is_addresses(text):
            yield Found(node, text, Finding("hosts", HOST, text, _of_addresses(text, flag)))


def _find_folders(program: Program) -> Iterator[Found]:
    for node, text, flag in _strings(program):
        if _FOLDER.fullmatch(text) and not _is_addresses(text):
            yield Found(node, text, Finding("folders", FOLDER, text, _of_folder(text, flag)))


def _strings(program: Program) -> Iterator[tuple[ast.AST, str, str]]:
    """Yields the node, the text and the flag of each string that is not a docstring.

    The flag is the name of the flag whose default the string is, or "".
    """
    rest: list[tuple[ast.AST, str]] = [(tree, "") for tree in program.trees]
    while rest:
        node, flag = rest.pop()
        text = literals.text(node)
        if text:
            yield node, text, flag
        if isinstance(node, ast.Expr) and literals.text(node.value):
            continue  # A docstring.
        if isinstance(node, ast.Call):
            flag = next((name for name in literals.flags(node) if len(name) > 1), flag)
        rest.extend((child, flag) for child in ast.iter_child_nodes(node))


def _is_addresses(text: str) -> bool:
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


def _of_folder(text: str, flag: str) -> str:
    if flag:
        return f"{text!r} is the default of a flag; pass --{flag}=... if the folder differs"
    return f"{text!r} is fixed in the script; make it a flag, or create it on each machine"


RULES = (
    Rule(
        "hosts",
        "",
        "addresses that are fixed in the script",
        'tf.train.ClusterSpec({"ps": ["pc-01:2222"]})',
        find=_find_hosts,
    ),
    Rule(
        "folders",
        "",
        "paths that are fixed in the script",
        'tf.summary.FileWriter("/tmp/logs")',
        find=_find_folders,
    ),
)
