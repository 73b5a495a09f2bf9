"""docs/failures.md: `python page.py RESULTS PAGE`, run by `tox -e faults`.

RESULTS is the file that the tests of this folder leave; each cell of the page is such a result.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

FAULTS = ["SIGTERM", "SIGKILL", "SIGSTOP for 30 s", "never started", "started 20 s late"]
FAULTS += ["killed and restarted"]
VICTIMS = ["worker", "chief", "ps"]
RUNTIMES = ["legacy", "modern"]
PAGE = """\
# Failures

Written by `tox -e faults` from what its tests have shown on TensorFlow {tensorflow}. A cluster of
one parameter server and two workers trains, real processes all; one task, the chief being worker 0,
meets its fault, and this is what the others do:

{table}

After each: no process and no port is left behind; the steps in TensorBoard's files are strictly
increasing; there is one MLflow run, and its status is the real one: FINISHED if the training was
finished, KILLED after SIGTERM to the chief, else FAILED, until it is gone on with.

- **SIGKILL**, **SIGTERM**: the task dies, and nobody starts it again. A task that is asked by
  SIGTERM ends with 143 within 20 s, the chief with a last checkpoint. 138 and 143 tell whoever
  supervises the tasks, such as Kubernetes, that starting them again may help.
- **killed and restarted**: the command that has started the cluster on this machine,
  `--strategy=ps` without `--job_name`, starts the task again, after 1, 2, 4 s and so on, up to 30,
  and each task at most `--max_restarts` times (default 3); with it, those that lost it. At most
  `--checkpoint_every` updates are lost, and the accuracy in the end is that of a training to which
  nothing happened. A wrong flag (exit code 2) or a failure of the program (1) is no reason to try
  again: it stops all.
- **never started**, **started 20 s late**: `--rendezvous_timeout` is how long a task is waited for.

A task that is started again when the training is complete finds that in the log folder, if it sees
the same, and ends with 0. On the legacy runtime the second worker trains on its own: it needs the
parameter server and the chief's initial values, but nobody needs it.
"""


def main(argv: list[str]) -> int:
    """Writes the page; returns 1 if a test failed or the results lack one."""
    results = json.loads(Path(argv[0]).read_text("utf-8"))
    page = Path(argv[1])
    page.write_text(
        PAGE.format(tensorflow=results["tensorflow"], table=table(results["cells"])),
        encoding="utf-8",
    )
    failed = [cell for cell in results["cells"] if not cell["outcome"]]
    print(f"{page}: {len(results['cells'])} faults, failed: {len(failed)}")
    return 1 if failed else 0


def table(cells: list[dict[str, Any]]) -> str:
    found = {(c["fault"], c["victim"], c["runtime"]): c["outcome"] for c in cells}
    rows = [["fault", "of the", *(f"the others, {runtime} runtime" for runtime in RUNTIMES)]]
    rows.append(["---"] * len(rows[0]))
    for fault, victim in itertools.product(FAULTS, VICTIMS):
        outcomes = [found.pop((fault, victim, runtime), "none") for runtime in RUNTIMES]
        rows.append([f"**{fault}**", victim, *(outcome or "**failed**" for outcome in outcomes)])
    if found:
        raise ValueError(f"faults that are not in FAULTS and VICTIMS: {list(found)}")
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
