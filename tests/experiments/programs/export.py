"""Exports and predicts in one process; prints what each call wrote or refused, as JSON."""

from __future__ import annotations

import contextlib
import io
import json
import sys

from compat.errors import UserError
from experiments.export import __main__ as export
from experiments.export import predict

COMMANDS = {"export": export.main, "predict": predict.main}


def main(calls: list[list[str]]) -> None:
    found = []
    for command, *argv in calls:
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                COMMANDS[command](argv)
            found.append(out.getvalue())
        except UserError as error:
            found.append(f"error: {error}")
    print(json.dumps(found))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
