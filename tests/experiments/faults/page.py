"""docs/failures.md: `python page.py RESULTS PAGE`, run by `tox -e faults`.

RESULTS is the folder in which the tests of this one leave a file for each TensorFlow; each cell of
the page is such a result. The newest TensorFlow has all of them, others may have the core.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

FAULTS = ["SIGTERM", "SIGKILL", "SIGSTOP for 30 s", "never started", "started 20 s late"]
FAULTS += ["killed and restarted", "network cut for 20 s", "network cut for good"]
VICTIMS = ["worker", "chief", "ps", "evaluator"]
SURROUNDINGS = ["disk full", "newest checkpoint torn", "log folder removed", "clock set back"]
SURROUNDINGS += ["MLflow dead", "MLflow back again", "MLflow slow", "SQLite locked"]
RUNTIMES = ["legacy", "modern"]
PAGE = """\
# Failures

Written by `tox -e faults` from what its tests have shown on TensorFlow {tensorflow}{core}.
A cluster of one parameter server and two workers trains, with an evaluator where that is the one
hit; real processes all. One task, the chief being worker 0, meets its fault, and this is what the
others do:

{faults}

After each: no process and no port is left behind; the steps in TensorBoard, read by both of its
loaders, are strictly increasing; there is one MLflow run, and its status is the real one: FINISHED
if the training was finished, KILLED after SIGTERM to the chief, else FAILED, until it is gone on
with.

- **SIGKILL**, **SIGTERM**: the task dies, and nobody starts it again. A task that is asked by
  SIGTERM ends with 143 within 20 s, the chief with a last checkpoint. Whoever serves the chief does
  so for up to 8 s more, for mostly all tasks are asked at a time, and without it nothing could be
  saved. 138 and 143 tell whoever supervises the tasks, such as Kubernetes, that starting them again
  may help.
- **killed and restarted**: the command that has started the cluster on this machine,
  `--strategy=ps` without `--job_name`, starts the task again, after 1 s, or 2, 4 and so on up to 30
  if it fails within ten seconds, and each task at most `--max_restarts` times (default 3); with it,
  those that lost it, which is not counted as theirs. Of the updates that
  the chief has told at most `--checkpoint_every` are lost, and the accuracy in the end is that of a
  training to which nothing happened. A wrong flag (exit code 2) or a failure of the program (1) is
  no reason to try again: it stops all.
- **never started**, **started 20 s late**: `--rendezvous_timeout` is how long a task is waited for.
- **network cut for 20 s**, **for good**: each task has a host with an address of its own, a network
  namespace, whose cable is taken off and put back, or not: nothing is refused, and nothing arrives.
  Within 20 s, whoever ends with 138 or 143 is started again, as Kubernetes does. For good is what a
  host without power looks like to the others: nothing tells them, and TensorFlow may wait for an
  answer without end. It is said every few seconds then, and after `--rendezvous_timeout` those that
  need it end.

A task that is started again when the training is complete finds that in the log folder, if it sees
the same, and ends with 0. On the legacy runtime the second worker trains on its own: it needs the
parameter server and the chief's initial values, but nobody needs it.

Updates are applied at least once. On the modern runtime the call that a lost worker had begun is
run again as a whole: each loss of a worker applies at most the updates of one `run_many` twice. On
the legacy runtime those of a call are applied twice where gRPC has delivered its request twice.
[A ledger of updates](ledger.md) counts them under faults at random.

What goes wrong around whoever records, which is the chief, and what it does; shown here in a
training of one process:

{surroundings}
"""


def main(argv: list[str]) -> int:
    """Writes the page; returns 1 if a test failed or a cell has no result."""
    folder, page = Path(argv[0]), Path(argv[1])
    found = [json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")]
    *others, newest = sorted(found, key=lambda result: _numbers(result["tensorflow"]))
    cells = {(c["fault"], c["victim"], c["runtime"]): c["outcome"] for c in newest["cells"]}
    core = [f"{other['tensorflow']} ({len(other['cells'])} of the cells)" for other in others]
    page.write_text(
        PAGE.format(
            tensorflow=newest["tensorflow"],
            core=f", and, the core of it, on {' and '.join(core)}" if core else "",
            faults=_table(list(itertools.product(FAULTS, VICTIMS)), cells),
            surroundings=_table([(fault, "") for fault in SURROUNDINGS], cells),
        ),
        encoding="utf-8",
    )
    if cells:
        raise ValueError(f"faults that have no row: {sorted(cells)}")
    failed = [
        f"{c['fault']} {c['victim']} {c['runtime']} on {result['tensorflow']}"
        for result in found
        for c in result["cells"]
        if not c["outcome"]
    ]
    missing = page.read_text("utf-8").count("**none**")
    print(f"{page}: {len(newest['cells'])} cells, missing: {missing}, failed: {failed or 'none'}")
    return 1 if failed or missing else 0


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")[:2]]


def _table(rows: list[tuple[str, str]], cells: dict[tuple[str, str, str], str]) -> str:
    """Returns a table of rows of (fault, victim), and takes what is in it out of `cells`."""
    head = ["fault", "of the"] if rows[0][1] else ["fault"]
    lines = [[*head, *(f"{runtime} runtime" for runtime in RUNTIMES)]]
    lines.append(["---"] * len(lines[0]))
    for fault, victim in rows:
        outcomes = [cells.pop((fault, victim, runtime), "**none**") for runtime in RUNTIMES]
        row = [f"**{fault}**", victim] if victim else [f"**{fault}**"]
        lines.append([*row, *(outcome or "**failed**" for outcome in outcomes)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
