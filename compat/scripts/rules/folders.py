"""Paths that are fixed in the script."""

from __future__ import annotations

import re
from typing import Iterator

from compat.scripts.rules.constants import strings
from compat.scripts.rules.findings import FOLDER, Finding
from compat.scripts.rules.hosts import is_addresses
from compat.scripts.rules.rule import Found, Rule, Script

# Folders of a user or a machine. `/train` and `/job:ps` are parts of TensorFlow names.
_FOLDER = re.compile(
    r"/(tmp|mnt)(/\S*)?|/(data|datasets|home|media|nfs|root|scratch|srv|var|work|Users)/\S*"
    r"|~/\S*|[A-Z]:[\\/]\S*"
)


def _find(script: Script) -> Iterator[Found]:
    for part in script.parts:
        for node, text, flag in strings(part.tree):
            if _FOLDER.fullmatch(text) and not is_addresses(text):
                yield Found(
                    part.number,
                    node,
                    text,
                    Finding("folders", FOLDER, text, _of_folder(text, flag)),
                )


def _of_folder(text: str, flag: str) -> str:
    if flag:
        return f"{text!r} is the default of a flag; pass --{flag}=... if the folder differs"
    return f"{text!r} is fixed in the script; make it a flag, or create it on each machine"


RULE = Rule(
    "folders",
    "",
    "paths that are fixed in the script",
    'tf.summary.FileWriter("/tmp/logs")',
    find=_find,
)
