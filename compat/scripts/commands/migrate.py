"""`python -m compat migrate`: migrates a TensorFlow 0.8 to 1.15 script to today's release.

The new program imports `compat.v1` as `tf`, and runs with plain `python`. The script itself is
not changed. A part that cannot be migrated stays as it is, with a numbered comment that explains
how to change it by hand.
"""

from __future__ import annotations

import argparse
import difflib
import os
import shlex
from pathlib import Path
from typing import Sequence

from compat.errors import Parser, UserError
from compat.scripts.commands import prove as proving
from compat.scripts.migrating import files, migration, runtimes
from compat.scripts.migrating.beside import Beside, beside
from compat.scripts.reading import conversion, modules
from compat.scripts.rules import catalog, sources
from compat.scripts.rules.rule import Rule

_USAGE = "python -m compat migrate PATH [--output=PATH | --diff] [--only=ID,..] [--skip=ID,..]"
_EPILOG = (
    "exit code: 0 if nothing is left to do by hand, 1 if the new program has remarks, 2 for a "
    "wrong command line or a script that cannot be read, which is left out of a folder"
)


def main(argv: list[str]) -> int:
    """Runs the command line of `migrate`; returns the exit code."""
    options = _parser().parse_args(argv)
    if options.list_rules:
        catalog.print_list()
        return 0
    if options.path is None:
        raise UserError("no script was given; name a script, or a folder with --output=NEW_FOLDER")
    chosen = catalog.selected(options)
    if options.to != "v1" and os.path.isdir(options.path):
        raise UserError(f"--to={options.to} takes a script; name one, or use --to=v1 for a folder")
    if options.prove and (options.diff or os.path.isdir(options.path)):
        raise UserError("--prove runs a new script; leave it out for a folder, and with --diff")
    if os.path.isdir(options.path):
        return _folder(options, [rule for rule in chosen if rule.id != "modules"])
    output = options.output or "{0}_{2}{1}".format(*os.path.splitext(options.path), options.to)
    _refuse_existing(output, options)
    others = [rule for rule in chosen if rule.id != "modules"]
    own_modules = None
    if options.to != "v1":
        own_modules = beside(options.path, lambda file: _module(file, others))
    migrated = files.migrated(
        options.path, others if own_modules else chosen, options.to, own_modules
    )
    code = _beside(own_modules, output, options) if own_modules else 0
    code = max(code, _report(options.path, output, migrated))
    if options.diff:
        _print_diff(options.path, output, migrated.text)
    elif migrated.is_changed:
        files.write(output, files.content(options.path, migrated.text))
        print(f"wrote {output}")
        # If the script has modules to migrate as well, `prove` migrates them all.
        words = [*([] if "modules" in migrated.counts else [f"--b={output}"]), options.path]
        if options.prove:
            return max(code, proving.main(words))
        command = " ".join(map(shlex.quote, ["python", "-m", "compat", "prove", *words]))
        print(f"to prove that it does the same: {command}")
    return code


def _module(file: str, chosen: Sequence[Rule]) -> migration.Migrated:
    """Migrates a module, so that the new program runs on either runtime (`--to=compat`)."""
    migrated = files.migrated(file, chosen, is_imported=True)
    return runtimes.migrate(file, migrated, False) if migrated.is_changed else migrated


def _beside(own_modules: Beside, output: str, options: argparse.Namespace) -> int:
    """Writes the modules of a script; returns the exit code."""
    code, texts, new, targets = 0, own_modules.texts(), {}, own_modules.targets(output)
    for file, migrated in own_modules.found.items():
        shown, target = os.path.relpath(file), os.path.relpath(targets.get(file, file))
        if file in own_modules.names or migrated.remarks:
            code = max(code, _report(shown, target, migrated))
        if file not in targets:
            continue
        text = texts[own_modules.names.get(file, file)]
        new[target] = files.content(file, text)
        if options.diff:
            _print_diff(shown, target, text)
        elif os.path.lexists(target) and Path(target).read_bytes() != new[target]:
            raise UserError(
                f"{target} exists, and is not what {shown} becomes; remove it, or name another "
                "folder with --output"
            )
    if not options.diff:
        for target, content in new.items():
            files.write(target, content)
            print(f"wrote {target}")
    return code


def _folder(options: argparse.Namespace, chosen: Sequence[Rule]) -> int:
    """Migrates the scripts in a folder; copies files that do not use TensorFlow.

    A script that does not use TensorFlow itself is migrated as well if it imports, or is imported
    by, a script that does, since names of TensorFlow may pass from one to the other. Scripts that
    cannot be migrated are listed and left out.
    """
    if not (options.output or options.diff):
        raise UserError(
            f"{options.path} is a folder; name a new one for the migrated scripts with --output"
        )
    output = options.output or options.path
    _refuse_existing(output, options)
    scripts = [file for file in sources.files(options.path) if file.endswith(".py")]
    code, new = 0, {}
    groups = [{os.path.abspath(file), *modules.imported(file)} for file in scripts]
    imported = {file for group in groups if any(map(_uses, group)) for file in group}
    for file in scripts:
        target = os.path.join(output, os.path.relpath(file, options.path))
        try:
            migrated = files.migrated(file, chosen, is_imported=os.path.abspath(file) in imported)
        except UserError as error:
            print(f"{error}; it is left out")
            code = 2
            continue
        code = max(code, _report(file, target, migrated))
        new[target] = files.content(file, migrated.text)
        if options.diff:
            _print_diff(file, target, migrated.text)
    if scripts and not new:
        raise UserError(f"no script in {options.path} can be migrated; correct one of them")
    if not options.diff:
        for target, content in new.items():
            files.write(target, content)
        print(f"wrote {len(new)} scripts to {output}; copy what else they read")
    return code


def _uses(file: str) -> bool:
    """Returns whether a script names TensorFlow; False if it cannot be read."""
    try:
        return any("tensorflow" in part.text for part in conversion.read(file))
    except UserError:
        return False


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m compat migrate",
        usage=_USAGE,
        description=__doc__,
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("path", metavar="PATH", nargs="?", help="a script, or a folder of them")
    add(
        "--to",
        choices=("v1", "compat"),
        default="v1",
        help="what to migrate to: v1, compat.v1 (default); compat, the same with the names of "
        "compat and a flag --runtime",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "--output", metavar="PATH", help="the new file or folder (default: SCRIPT_v1.py, ...)"
    )
    output.add_argument("--diff", action="store_true", help="only show the changes")
    add("--prove", action="store_true", help="run both programs, and compare them")
    catalog.add_options(parser)
    return parser


def _refuse_existing(output: str, options: argparse.Namespace) -> None:
    if not options.diff and os.path.lexists(output):
        raise UserError(f"{output} exists; name a new one with --output, or remove it")


def _report(path: str, output: str, migrated: migration.Migrated) -> int:
    if migrated.was_migrated:
        print(f"{path}: is migrated already; not changed")
    elif not (migrated.counts or migrated.remarks):
        print(f"{path}: uses nothing of TensorFlow that has to change; not changed")
    else:
        done = ", ".join(f"{rule} {count}" for rule, count in migrated.counts.items())
        print(f"{path}: {done or 'nothing was rewritten'}")
    for line, why in migrated.left:
        print(f"{path}:{line}: {why}")
    for number, (line, text) in enumerate(migrated.remarks, 1):
        print(f"{path if migrated.was_migrated else output}:{line}: remark {number}: {text}")
    return int(bool(migrated.remarks))


def _print_diff(path: str, output: str, text: str) -> None:
    before = conversion.read(path)[0].text
    lines = difflib.unified_diff(before.splitlines(True), text.splitlines(True), path, output, n=1)
    print("".join(line if line.endswith("\n") else line + "\n" for line in lines), end="")
