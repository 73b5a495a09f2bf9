"""`python -m compat check`: lists what a TensorFlow 0.8 to 1.15 script uses that has changed.

Reads the text of scripts and notebooks; runs none of their code and does not load TensorFlow.
"""

from __future__ import annotations

import os
import sys

from compat.errors import Parser
from compat.processes.output import discard
from compat.scripts.rules import catalog, formats, sources

_EPILOG = (
    "exit code: 0 if everything runs under compat run and keeps its meaning without it, "
    "1 if something fails or changes, 2 for a wrong command line"
)


def main(argv: list[str]) -> int:
    """Runs the command line of `check`; returns the exit code."""
    parser = Parser(
        prog="python -m compat check",
        description=(__doc__ or "").partition("\n")[0],
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("path", nargs="*", help="a script, a notebook, or a folder of them")
    catalog.add_options(parser)
    add("--format", choices=sorted(formats.FORMATS), default="text", help="default: text")
    options = parser.parse_args(argv)
    if options.list_rules:
        catalog.print_list()
        return 0
    if not options.path:
        parser.error("no script was given")
    chosen = catalog.selected(options)
    paths = (os.path.normpath(file) for path in options.path for file in sources.files(path))
    files = dict.fromkeys(paths)  # Each file once, in the order of the arguments.
    findings = [finding for file in files for finding in sources.check(file, chosen)]
    _print(formats.FORMATS[options.format](findings, len(files)))
    return int(any(finding.fails for finding in findings))


def _print(text: str) -> None:
    # File names may hold characters that the terminal cannot show, and bytes that are not text.
    encoding = sys.stdout.encoding or "utf-8"
    shown = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        print(shown, flush=True)
    # `| head` has closed the pipe; without this, Python would flush it again at exit and fail.
    except BrokenPipeError:
        discard(sys.stdout)
