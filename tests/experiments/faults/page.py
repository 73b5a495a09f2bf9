"""docs/failures.md: `python page.py RESULTS PAGE`, run by `tox -e faults`.

RESULTS is the folder in which the tests of this one leave a file for each TensorFlow; each cell of
the page is such a result. The newest TensorFlow has all of them, others may have the core.
"""

from __future__ import annotations

import inspect
import itertools
import json
import sys
from pathlib import Path

from compat.cluster.liveness.run_state import RunState

FAULTS = ["SIGTERM", "SIGKILL", "SIGSTOP for 30 s", "never started", "started 20 s late"]
FAULTS += ["killed and restarted", "network cut for 20 s", "network cut for good"]
VICTIMS = ["worker", "chief", "ps", "evaluator"]
ROWS = [*itertools.product(FAULTS, VICTIMS)]
ROWS += [("SIGTERM", "all at once"), ("SIGHUP", "all at once")]
SURROUNDINGS = ["disk full", "newest checkpoint torn", "log folder removed", "clock set back"]
SURROUNDINGS += ["second start", "closed terminal", "output cannot be written"]
SURROUNDINGS += ["MLflow dead", "MLflow back again", "MLflow slow", "SQLite locked"]
RUNTIMES = ["legacy", "modern"]
PAGE = """\
# Failures

Written by `tox -e faults` from what its tests have shown on TensorFlow {tensorflow}{core}.
A cluster of one parameter server and two workers trains, with an evaluator where the fault is the
evaluator's; all are real processes. One task fails, and the table shows what the others do. The
chief is worker 0. To *name* a task is to log which one is missing; numbers are exit codes:

{faults}

After each: no process and no port is left behind; the steps in TensorBoard, read by both of its
loaders, are strictly increasing; there is one MLflow run, whose status is FINISHED if the run is
complete, KILLED after SIGTERM to the chief, else FAILED, until it is resumed.

- **SIGKILL**, **SIGTERM**: the task dies, and is not restarted. After SIGTERM a task exits with 143
  within 20 s, the chief with a last checkpoint. A task that serves the chief does so for up to 8 s
  more: usually all tasks get SIGTERM at the same time, and without it the chief could save nothing.
  138 and 143 signal to a supervisor, such as Kubernetes, that a restart may help.
- **killed and restarted**: the launcher of a cluster on this machine, `--strategy=ps` without
  `--job_name`, restarts the task after 1 s, or 2, 4 and so on up to 30 s if it fails within ten
  seconds, and each task at most `--max_restarts` times (default 3). It also restarts the tasks that
  have lost it, and does not count these restarts. At most `--checkpoint_every` of the updates that
  the chief has logged are lost, and the final accuracy is that of a run without a fault. A wrong
  flag (exit code 2) or a failure of the program (1) stops all tasks: a retry would not help. A
  worker of the legacy runtime that has made its part, and has ended with 0, is not started again
  when another one is, which then makes the rest without it; the line about the restart names it.
- **never started**, **started 20 s late**: tasks wait for it up to `--rendezvous_timeout` seconds.
- **network cut for 20 s**, **for good**: each task has a host with an address of its own, a network
  namespace, whose link is taken down and up again, or not: nothing is refused, and nothing arrives.
  A task that exits with 138 or 143 within these 20 s is restarted, as by Kubernetes. To the other
  tasks, a link that stays down looks like a host that has lost power: they get no message, and
  TensorFlow may wait for an answer without end. They log the task every few seconds, and those that
  need it exit after `--rendezvous_timeout`.
- **all at once**: the launcher of a cluster on this machine, its watchdog, the process that its
  tasks are forked from, and the tasks get the signal at the same time, as by systemd, `scancel` or
  `pkill`. Nothing that was logged is lost, if the chief can save within ten seconds, and the same
  command resumes.

A task that is restarted when the run is complete finds that in the log folder, if it has the same
one, and exits with 0. On the legacy runtime the second worker trains on its own: it needs the
parameter server and the chief's initial values, but no task needs it.

Updates are applied at least once. On the modern runtime the call that a lost worker had begun is
run again as a whole: each loss of a worker applies at most the updates of one `run_many` twice. On
the legacy runtime those of a call are applied twice where gRPC has delivered its request twice.
[A ledger of updates](ledger.md) counts them under random faults.

The chief also records the run. This is what it does when its disk, its clock, its terminal or
MLflow fails, or another run begins in its log folder, tested in a run of one process:

{surroundings}

{states}
"""
STATES = f"""\
`server.state` of a `compat.Server` says what has become of its task. This is the docstring of
`RunState`:

{inspect.getdoc(RunState)}""".replace("``", "`")


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
            faults=_table(ROWS, cells),
            states=STATES,
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
