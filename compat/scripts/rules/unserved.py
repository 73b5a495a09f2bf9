"""Names that nothing serves are left, with a remark.

TensorFlow 2.0 removed `tf.contrib`; `compat` serves most of it, and `compat.scripts.names` says why
not the rest. A module is named once, where it is imported; not where its absence is handled.
"""

from __future__ import annotations

from typing import Iterable, Iterator

from compat.scripts.reading.program import Program, Remark
from compat.scripts.reading.uses import Use
from compat.scripts.rules import lookup
from compat.scripts.rules.findings import FAILS, Finding
from compat.scripts.rules.rule import Found, Rule, Script


def finding(use: Use) -> Finding | None:
    """Returns why nothing serves a name, or None for one that is served or handled."""
    if use.call is not None:
        return None
    found = lookup.find(use.name, use.is_tensorflow)
    return found if found is not None and found.kind is FAILS else None


def _once(uses: Iterable[Use]) -> Iterator[tuple[Use, Finding]]:
    imported: set[str] = set()
    for use in uses:
        found = finding(use)
        if found is None or any(f"{use.name}.".startswith(f"{module}.") for module in imported):
            continue
        if use.imported:
            imported.add(use.name)
        if not use.guarded:
            yield use, found


def _find(script: Script) -> Iterator[Found]:
    for use, found in _once(script.uses):
        yield Found(use.part, use.node, use.spelled, found)


def _rewrite(program: Program) -> Iterator[Remark]:
    for use, found in _once([*program.uses, *program.other_uses]):
        yield Remark(use.node, found.message)


RULE = Rule(
    "unserved",
    "1.0, 2.0",
    "names that nothing serves are left, with a remark",
    "tf.contrib.ffmpeg.decode_audio(x, y, z)",
    "# compat 1: tf.contrib.ffmpeg.decode_audio is gone since TensorFlow 2.0: TensorFlow removed "
    "its kernels; run the script on its original TensorFlow, or remove it\n"
    "tf.contrib.ffmpeg.decode_audio(x, y, z)",
    find=_find,
    rewrite=_rewrite,
)
