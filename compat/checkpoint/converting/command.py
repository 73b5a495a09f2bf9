"""`python -m compat convert-checkpoint`: converts what an old program stored for a new one.

Matches variables by name, after the given renames; the slots of an optimizer follow by rule. If a
variable has no match, lists it with the reason and writes nothing. Without NEW, only shows the
matches; with OLD alone, lists its variables. Of a graph, writes a SavedModel.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
from pathlib import Path
from typing import Mapping, NamedTuple, Sequence

from compat._tensorflow import startup
from compat.checkpoint.converting import report, saved_model, stores
from compat.checkpoint.formats.stored import Stored
from compat.checkpoint.matching import MatchOptions, match
from compat.errors import Parser, UserError, reason_of

_USAGE = "python -m compat convert-checkpoint (OLD [NEW --like=CHECKPOINT] | GRAPH [NEW]) [options]"
_EPILOG = (
    "A CHECKPOINT is a prefix, such as logs/model.ckpt-100, a log folder, for the newest in it, or "
    "weights of Keras 3, *.weights.h5. A GRAPH is a frozen graph, *.pb, or a file *.meta. "
    "A PATTERN is a name, with * and ? allowed. Exit code: 0 if each variable has a value, else 2."
)
_OF_MATCHES = ("like", "rename", "renames", "fresh", "cast", "betas")
_OF_GRAPHS = ("inputs", "outputs", "value")


def main(argv: list[str]) -> int:
    """Runs the command line of `convert-checkpoint`; returns the exit code."""
    options = _parser().parse_intermixed_args(argv)
    is_graph = saved_model.is_graph(options.old)
    for name in _OF_MATCHES if is_graph else _OF_GRAPHS:
        if getattr(options, name):
            what = "a checkpoint, not for a graph" if is_graph else "a graph, *.pb or *.meta"
            raise UserError(f"--{name} is for {what}, and OLD={options.old}; leave it out")
    pairs = _pairs(options.rename, options.renames)
    betas = _betas(options.betas)
    changes_weights = pairs or options.fresh or options.cast or options.betas
    if options.like is None and not is_graph and (options.new or changes_weights):
        raise UserError(
            "--like is missing; give a checkpoint of the program that will resume, which a "
            "run of one step writes"
        )
    if options.new and os.path.lexists(options.new):
        raise UserError(f"NEW={options.new} exists; name a new folder")
    report.check(options.report)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # Reading checkpoints needs no GPU.
    with startup.without_notes():
        if is_graph:
            _convert_graph(options)
            return 0
        old = stores.read(options.old, "OLD")
        if options.like is None:
            report.print_variables(old)
            report.write(options.report, report.of_variables(old))
            return 0
        if options.new:
            stores.check_name(options.new, options.like)
        like = stores.read(options.like, "--like")
        names = _expanded(pairs, sorted(old.values), sorted(like.values))
        _convert(old, like, MatchOptions(names, options.fresh, options.cast, betas), options)
    return 0


def _convert(old: Stored, like: Stored, how: MatchOptions, options: argparse.Namespace) -> None:
    """Prints the matches, and writes the checkpoint if NEW is given and nothing is missing."""
    matches = match(old, like, how)
    report.print_matches(old, like, matches)
    content = report.of_matches(old, like, matches)
    missing = content["missing"]
    if missing:
        report.write(options.report, {**content, "written": None})
        raise UserError(
            f"{missing} of {len(matches)} variables of {like.path} have no value in {old.path}; "
            "give each with --rename=OLD_NAME:NEW_NAME, or keep its value of --like with "
            "--fresh=NAME; nothing was written"
        )
    written = None
    if options.new is None:
        print(f"\nall {len(matches)} variables have a value; name a folder after OLD to write them")
    else:
        values = {each.name: each.value for each in matches if each.value is not None}
        written = stores.write(options.new, like, values)
        print(f"\nwrote {written}")
    report.write(options.report, {**content, "written": written})


def _convert_graph(options: argparse.Namespace) -> None:
    inputs, outputs = (
        text.split(",") if text else [] for text in (options.inputs, options.outputs)
    )
    wanted = saved_model.Wanted(inputs, outputs, options.value)
    content, rows = saved_model.convert(options.old, options.new, wanted)
    report.print_table([("", "KEY", "TENSOR", "SHAPE", "DTYPE"), *rows])
    print(f"\n{len(content['variables'])} variables, {len(content['unused'])} unused")
    print(f"wrote {options.new}" if options.new else "name a folder after OLD to write them")
    report.write(options.report, content)


def _betas(text: str | None) -> tuple[float, float]:
    if text is None:
        return MatchOptions().betas
    try:
        first, second = map(float, text.split(","))
    except ValueError:
        first = second = 0.0
    if not (0 < first < 1 and 0 < second < 1):
        raise UserError(f"--betas={text} is not a pair of numbers in (0, 1); give 0.9,0.999")
    return first, second


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m compat convert-checkpoint",
        usage=_USAGE,
        description=(__doc__ or "").partition("\n\n")[2],
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("old", metavar="OLD", help="what to convert: a CHECKPOINT or a GRAPH")
    add("new", metavar="NEW", nargs="?", help="the folder or the file of weights to create")
    add("--like", metavar="CHECKPOINT", help="a checkpoint of the new program")
    repeat = functools.partial(add, action="append", default=[])
    repeat(
        "--rename",
        metavar="OLD_NAME:NEW_NAME",
        help="old and new name of a variable, or with * for the same text in both; repeatable",
    )
    add("--renames", metavar="FILE", help="a file of such pairs, one per line; # starts a comment")
    repeat("--fresh", metavar="PATTERN", help="keep the value of --like; repeatable")
    repeat("--cast", metavar="PATTERN", help="convert to the dtype of --like; repeatable")
    add("--betas", metavar="BETA1,BETA2", help="of Adam, which count updates (default: 0.9,0.999)")
    add("--inputs", metavar="NAMES", help="of a graph (default: the placeholders it needs)")
    add("--outputs", metavar="NAMES", help="of a graph, as NAME,KEY=NAME:0 (default: found)")
    repeat("--value", metavar="PLACEHOLDER=NUMBER", help="instead of an input; repeatable")
    add("--report", metavar="FILE", help="also write what matched and what did not as JSON")
    return parser


class Rename(NamedTuple):
    """A pair of an old and a new name, or a pattern: `*` in both stands for the same text."""

    given: str  # As the user gave it.
    old: str
    new: str


def _pairs(flags: Sequence[str], path: str | None) -> list[Rename]:
    """Returns the pairs of names in the --rename `flags` and in the file `path`, if given."""
    pairs = [(f"--rename={pair}", pair) for pair in flags]
    if path:
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = reason_of(error) if isinstance(error, OSError) else "not UTF-8 text"
            raise UserError(
                f"--renames={path} cannot be read ({reason}); name a text file with "
                "OLD_NAME:NEW_NAME in each line"
            ) from None
        for number, line in enumerate(lines, 1):
            pair = line.partition("#")[0].strip()
            if pair:
                pairs.append((f"{path}:{number}: {pair}", pair))
    renames: dict[str, Rename] = {}
    for argument, pair in pairs:
        # The last colon: some programs saved their variables as "name:0".
        old, _, new = (part.strip() for part in pair.rpartition(":"))
        if not (old and new):
            raise UserError(f"{argument} is not a pair of names; give OLD_NAME:NEW_NAME")
        if old.count("*") != new.count("*"):
            raise UserError(f"{argument} has * in one name only; give as many in the other")
        if renames.setdefault(new, Rename(argument, old, new)).old != old:
            raise UserError(f"{argument} names {new} twice; give each new name once")
    return list(renames.values())


def _expanded(
    renames: Sequence[Rename], old: Sequence[str], new: Sequence[str]
) -> Mapping[str, str]:
    """Returns the old name of each variable that `renames` determine, by its new name.

    A pair of names takes precedence over patterns, and a pattern over those after it.
    """
    exact = {rename.new: rename.old for rename in renames if "*" not in rename.old}
    for rename in renames:
        if "*" not in rename.old:
            continue
        pattern = "(.+)".join(map(re.escape, rename.old.split("*")))
        matches = filter(None, (re.fullmatch(pattern, name) for name in old))
        targets = {_filled(rename.new, match.groups()): match.group() for match in matches}
        fitting = {target: name for target, name in targets.items() if target in new}
        if not fitting:
            raise UserError(
                f"{rename.given} fits no variable of the old checkpoint and one of --like; give "
                "names that both have, with * for the part that is the same"
            )
        taken = set(exact.values())
        for target, name in fitting.items():
            if name not in taken:
                exact.setdefault(target, name)
    return exact


def _filled(name: str, texts: Sequence[str]) -> str:
    parts = name.split("*")
    return "".join(a + b for a, b in zip(parts, [*texts, ""]))
