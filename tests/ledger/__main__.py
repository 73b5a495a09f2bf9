"""Runs the cluster of `program.py` with faults at random, and checks its ledger.

    python -m tests.ledger --minutes=30 --runtime=legacy --results=FOLDER
    python -m tests.ledger --results=FOLDER --page=docs/ledger.md

The first leaves FOLDER/legacy.json; the second writes the page from what is there. Both are slow
tests as well. Cutting a task off needs root, for network namespaces.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.ledger.page import write_page
from tests.ledger.run import measure


def main() -> int:
    """Returns 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.ledger")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--runtime", choices=("legacy", "modern"))
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--every", type=float, default=30, help="seconds between two faults")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path)
    args = parser.parse_args()
    args.results.mkdir(parents=True, exist_ok=True)
    wrong = []
    if args.runtime:
        found = measure(args.runtime, args.minutes, args.every, args.seed)
        text = json.dumps(found, indent=1)
        (args.results / f"{args.runtime}.json").write_text(text + "\n", encoding="utf-8")
        print(text, flush=True)
        wrong = found["wrong"]
    if args.page:
        write_page(args.results, args.page)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
