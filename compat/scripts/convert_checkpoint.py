"""`python -m compat convert-checkpoint`: converts the checkpoint of an old program for a new one.

Matches variables by name, after the given renames. If a variable has no match, lists it with the
reason and writes nothing. Without NEW, only shows the matches; with OLD alone, lists its variables.
"""

from __future__ import annotations

import argparse
import functools
import os
import tempfile
from pathlib import Path
from typing import Mapping, Sequence

import numpy as np

from compat._tensorflow import quietly, startup, tf1
from compat.checkpoint import files
from compat.checkpoint.matching import Match, Told, Values, dtype_name, match, unused
from compat.errors import Parser, UserError

_USAGE = "python -m compat convert-checkpoint OLD [NEW --like=CHECKPOINT [options]]"
_EPILOG = (
    "A CHECKPOINT is a prefix, such as logs/model.ckpt-100, or a log folder, for the newest in it. "
    "A PATTERN is a name, with * and ? allowed. Exit code: 0 if each variable has a value, else 2."
)
_READABLE = "name a folder, or a prefix without .index or .meta, of tf.train.Saver"
_OBJECT_BASED = "/.ATTRIBUTES/VARIABLE_VALUE"
_MOST_HINTS = 5


def main(argv: list[str]) -> int:
    """Runs the command line of `convert-checkpoint`; returns the exit code."""
    options = _parser().parse_intermixed_args(argv)
    told = Told(_renames(options), options.fresh, options.cast)
    if options.like is None and (options.new or told != Told({}, [], [])):
        raise UserError(
            "--like is missing; give a checkpoint of the program that will resume, which a "
            "run of one step writes"
        )
    if options.new and os.path.lexists(options.new):
        raise UserError(f"NEW={options.new} exists; name a new folder")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # Reading checkpoints needs no GPU.
    with startup.without_notes():
        prefix, values = _read(options.old)
        if options.like is None:
            _print_table([("VARIABLE", "SHAPE", "DTYPE"), *_rows(values, sorted(values))])
            print(f"\n{prefix} holds {len(values)} variables")
        else:
            _convert(prefix, values, options.new, options.like, told)
    return 0


def _convert(prefix: str, old: Values, new: str | None, like_path: str, told: Told) -> None:
    """Prints the matches, and writes the checkpoint to `new` if given and nothing is missing."""
    like_prefix, like = _read(like_path)
    matches = match(old, like, told)
    rows = _rows(like, [found.name for found in matches])
    table = [(*row, found.source or "-", _how(found)) for row, found in zip(rows, matches)]
    _print_table([("VARIABLE", "SHAPE", "DTYPE", "FROM", "HOW"), *table])
    left = unused(old, matches)
    if left:
        print(f"\nunused variables of {prefix}:")
        _print_table(_rows(old, left))
    missing = sum(found.value is None for found in matches)
    if missing:
        raise UserError(
            f"{missing} of {len(matches)} variables of {like_prefix} have no value in {prefix}; "
            "give each with --rename=OLD_NAME:NEW_NAME, or keep its value of --like with "
            "--fresh=NAME; nothing was written"
        )
    if new is None:
        print(f"\nall {len(matches)} variables have a value; name a folder after OLD to write them")
    else:
        values = {found.name: found.value for found in matches if found.value is not None}
        print(f"\nwrote {_write(new, values)}")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m compat convert-checkpoint",
        usage=_USAGE,
        description=(__doc__ or "").partition("\n\n")[2],
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("old", metavar="OLD", help="the checkpoint to convert, of tf.train.Saver")
    add("new", metavar="NEW", nargs="?", help="the log folder to create, with one checkpoint")
    add("--like", metavar="CHECKPOINT", help="a checkpoint of the new program")
    repeat = functools.partial(add, action="append", default=[])
    repeat(
        "--rename", metavar="OLD_NAME:NEW_NAME", help="old and new name of a variable; repeatable"
    )
    add("--renames", metavar="FILE", help="a file of such pairs, one per line; # starts a comment")
    repeat("--fresh", metavar="PATTERN", help="keep the value of --like; repeatable")
    repeat("--cast", metavar="PATTERN", help="convert to the dtype of --like; repeatable")
    return parser


def _renames(options: argparse.Namespace) -> Mapping[str, str]:
    """Returns a mapping from new to old names."""
    pairs = [(f"--rename={pair}", pair) for pair in options.rename]
    if options.renames:
        try:
            lines = Path(options.renames).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", "not UTF-8 text")
            raise UserError(
                f"--renames={options.renames} cannot be read ({reason}); name a text file with "
                "OLD_NAME:NEW_NAME in each line"
            ) from None
        for number, line in enumerate(lines, 1):
            pair = line.partition("#")[0].strip()
            if pair:
                pairs.append((f"{options.renames}:{number}: {pair}", pair))
    renames: dict[str, str] = {}
    for said, pair in pairs:
        # The last colon: some programs saved their variables as "name:0".
        source, _, target = (part.strip() for part in pair.rpartition(":"))
        if not (source and target):
            raise UserError(f"{said} is not a pair of names; give OLD_NAME:NEW_NAME")
        if renames.setdefault(target, source) != source:
            raise UserError(f"{said} names {target} twice; give each new name once")
    return renames


def _read(path: str) -> tuple[str, dict[str, np.ndarray]]:
    """Returns the prefix and the values of the checkpoint at a prefix or in a folder."""
    prefix = path
    if os.path.isdir(path):
        prefixes = files.history(path)
        if not prefixes:
            raise UserError(
                f"folder {path} has no checkpoint that its file `checkpoint` lists; give a prefix, "
                f"such as {os.path.join(path, 'model.ckpt-100')}"
            )
        prefix = prefixes[-1]
    values = files.read(prefix, _READABLE)
    if not values:  # TensorFlow finds none if the prefix is the name of a file, such as *.index.
        raise UserError(f"checkpoint {prefix} holds no variables; {_READABLE}")
    if any(name.endswith(_OBJECT_BASED) for name in values):
        raise UserError(
            f"checkpoint {prefix} is object-based (tf.train.Checkpoint, Keras): its keys are "
            "object attributes, not variable names; restore it in its program and save it there "
            "with tf.compat.v1.train.Saver"
        )
    return prefix, values


def _how(found: Match) -> str:
    if not found.alike:
        return found.how
    names = ", ".join(found.alike[:_MOST_HINTS])
    more = len(found.alike) - _MOST_HINTS
    return f"{found.how}; candidates: {names}{f' and {more} more' if more > 0 else ''}"


def _rows(values: Values, names: Sequence[str]) -> list[tuple[str, ...]]:
    return [(name, str(list(values[name].shape)), dtype_name(values[name])) for name in names]


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip(), flush=True)


def _write(new: str, values: Values) -> str:
    """Creates the folder `new` with one checkpoint, atomically; returns the checkpoint's prefix."""
    folder = Path(os.path.abspath(new))
    name = "model.ckpt"
    if "global_step" in values:
        name += f"-{int(values['global_step'])}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".", dir=str(folder.parent)) as hidden:
            unfinished = Path(hidden) / folder.name
            unfinished.mkdir()
            files.write(str(unfinished / name), values)
            with quietly():
                # A relative path, since the folder is about to be renamed.
                tf1.train.update_checkpoint_state(str(unfinished), name)
            unfinished.rename(folder)
    except (OSError, tf1.errors.OpError) as error:
        reason = str(error).splitlines()[0]
        if isinstance(error, OSError):
            reason = f"{error.strerror}: {error.filename}"
        raise UserError(
            f"NEW={new} cannot be written ({reason}); name a folder that can be created"
        ) from None
    return os.path.join(new, name)
