"""docs/ledger.md, from what runs of the ledger have shown."""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import Any

_PAGE = """\
# Ledger

Written by `python -m tests.ledger`. A cluster of one parameter server and two workers trains, each
task on a host of its own. Each update writes its number into a variable on the parameter server,
the ledger; each client keeps a journal of what it has sent and what was answered. Every {every:g} s
something goes wrong, chosen at random: a task is killed, stopped or cut off from the network; all
tasks get SIGTERM or SIGHUP at once; the disk of the checkpoints is full for 25 s, which the chief
has to name before it ends with 1; or another run is started in the log folder, which has to be
refused with 2 and one line. A task that ends is started again. In the end a checker compares
journals, checkpoints and ledger, and says for each update whether it was applied once, twice or
never. What is allowed is what [failures](failures.md) promises:

- *Twice*: on the legacy runtime none. On the modern runtime the updates of one `run_many`, here
  {count}, for each loss of a worker.
- *Lost*: an update that was answered, only if the run has later resumed from a checkpoint that was
  begun before the answer. Here the chief writes one every {save:g} s.
- *Staleness*: what a step reports is at most the number of updates that were under way at the same
  time.

Updates that were not answered, since their client was lost or had lost its peers, may be in the
ledger or not. `tests/ledger` shows that the checker finds a client that leaves out an update, and
one that repeats one. A ledger of examples, which says how often the checkpoint of a run has each of
them, is kept by `tests/experiments/test_epochs.py`: for one to three workers, streams and arrays,
one or two epochs, a chief that is killed or not; what is allowed is the law of
[epochs](experiments.md#data-that-do-not-fit-in-memory).

{table}

{verdict}

The last two rows compare the time of the run with the time in which the same cluster makes as many
steps without faults, by the rate of a shorter run. The difference is waiting for tasks that start,
are stopped or are cut off, and the updates since the last checkpoint, which are made again.

Half an hour on each runtime, and this page:

```sh
python -m tests.ledger --results=ledger --minutes=30 --runtime=legacy
python -m tests.ledger --results=ledger --minutes=30 --runtime=modern
python -m tests.ledger --results=ledger --page=docs/ledger.md
```
"""
_FAULT_KINDS = {"SIGKILL": "killed", "SIGSTOP": "stopped", "network": "cut off"}


def write_page(results: Path, page: Path) -> None:
    """Writes the page of the results of both runtimes, as far as they are there."""
    found = [json.loads(path.read_text("utf-8")) for path in sorted(results.glob("*.json"))]
    rows = [_row(result) for result in found]
    lines = ["| | " + " | ".join(f"{result['runtime']} runtime" for result in found) + " |"]
    lines.append("|---" * (1 + len(found)) + "|")
    lines += ["| " + " | ".join([name, *(row[name] for row in rows)]) + " |" for name in rows[0]]
    wrong = [f"{result['runtime']}: {line}" for result in found for line in result["wrong"]]
    verdict = "No promise was broken."
    if wrong:
        verdict = "Promises broken:\n\n" + "\n".join(f"- {line}" for line in wrong)
    first = found[0]
    page.write_text(
        _PAGE.format(
            every=first["every"],
            count=first["count"],
            save=first["save_every"],
            table="\n".join(lines),
            verdict=verdict,
        ),
        encoding="utf-8",
    )


def _row(found: dict[str, Any]) -> dict[str, str]:
    kinds = collections.Counter(
        f"{task.replace('worker 0', 'chief')} {_FAULT_KINDS[what.split()[0]]}" if task else what
        for task, what in found["faults"]
    )
    mean, most = found["staleness"]
    return {
        "TensorFlow": found["tensorflow"],
        "duration": f"{found['secs'] / 60:.1f} minutes",
        "faults": ", ".join(f"{count} x {kind}" for kind, count in sorted(kinds.items())),
        "resumed from a checkpoint": f"{found['resumed']} times",
        "updates sent": f"{found['sent']:,}",
        "applied once": f"{found['once']:,}",
        "applied twice": f"{found['twice']:,}",
        "lost, after the last checkpoint": f"{found['lost']:,}",
        "lost at once, at most": f"{found['most_lost']:,}",
        "unanswered": f"{found['unanswered']:,}, of which {found['unanswered_applied']:,} applied",
        "promises broken": f"{len(found['wrong'])}",
        "staleness": f"{mean:g} on average, at most {most}",
        "step in the end": f"{found['step']:,}",
        "time to that step": f"{found['secs'] / 60:.1f} minutes",
        "time to that step without faults": f"{found['step'] / found['rate'] / 60:.1f} minutes",
    }
