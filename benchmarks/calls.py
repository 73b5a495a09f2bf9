"""What an update on a parameter server costs, by how many are made in a call of the session.

    python -m benchmarks.calls --rounds=7

And by how many a worker makes of its own (`--communication_period`). One worker measures one way
after the other, in rounds, on the network of 2016. Processor time, of the worker and of the
parameter server, is the steadier figure where a machine is shared. Linux, legacy runtime.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, Callable, Mapping

from benchmarks import local_cluster
from benchmarks.task import BATCH_SIZE, LEARNING_RATE

# Updates in a call, and those of its own between two messages to the parameter server.
WAYS = ((1, 1), (5, 1), (20, 1), (5, 5), (20, 20), (50, 50))
UPDATES = 400  # In one way in one round.
HEADER = ["updates in a call", "period", "ms an update", "to one a call", "lowest", "highest"]
HEADER += ["CPU ms, worker", "CPU ms, ps"]
_WARM_UP = 100  # Updates before a session makes several in a call.


def cpu_seconds(pid: int) -> float:
    """Returns the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def parameter_server() -> int:
    """Returns the process id of the parameter server, a child of the same process as this one."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            argv = (process / "cmdline").read_bytes().split(b"\0")
            parent = (process / "stat").read_text(encoding="ascii").rpartition(")")[2].split()[1]
        except (OSError, UnicodeDecodeError):
            continue  # It has ended, or is nobody of ours.
        if b"--job_name=ps" in argv and int(parent) == os.getppid():
            return int(process.name)
    raise local_cluster.FailedError("no process with --job_name=ps runs beside this one")


def measure(rounds: int, update: Mapping[tuple[int, int], Callable[[int], None]]) -> list[Any]:
    """Returns by way wall time, and processor time of both tasks, in ms an update of each round."""
    server = parameter_server()
    update[WAYS[0]](_WARM_UP)
    for (size, _), call in update.items():
        call(size)  # The session optimizes what a call of a new size runs.
    found: dict[Any, list[list[float]]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in WAYS:
            wall, mine, servers = time.perf_counter(), time.process_time(), cpu_seconds(server)
            update[way](UPDATES)
            wall, mine = time.perf_counter() - wall, time.process_time() - mine
            servers = cpu_seconds(server) - servers
            found[way].append([1e3 * total / UPDATES for total in (wall, mine, servers)])
    return list(found.items())


def run_task(flags: argparse.Namespace) -> None:
    """Serves or trains; worker 0 prints what it has measured."""
    import compat
    from compat.cluster import ports
    from compat.datasets import Batches
    from experiments.mnist import MNIST
    from experiments.training import program
    from experiments.training.inputs import data_of
    from experiments.training.recording.schedule import Schedule

    cluster = {"ps": flags.ps_hosts.split(","), "worker": flags.worker_hosts.split(",")}
    address = cluster[flags.job_name][flags.task_index]
    ports.release_inherited(int(address.rpartition(":")[2]))
    server = compat.Server(cluster, flags.job_name, flags.task_index, runtime="legacy")
    if flags.job_name == "ps":
        server.join()
        return
    schedule = Schedule(550, 1, None, 50, 100)
    steps: dict[int, Any] = {}
    for period in sorted({period for _, period in WAYS}):
        settings = MNIST.Settings(
            batch_size=BATCH_SIZE,
            optimizer="sgd",
            learning_rate=LEARNING_RATE,
            initial="normal",
            dataset=flags.dataset,
            strategy="ps",
            communication_period=period,
        )
        experiment = MNIST(settings)
        data = data_of(experiment.data())
        steps[period] = program.build(experiment, data, server, schedule).train
    supervisor = compat.Supervisor(logdir=None, summary_op=None)
    batches = Batches(len(data.train["labels"]), BATCH_SIZE, 1)
    server.wait_for_peers(everybody=True)
    with supervisor.managed_session(server.target) as session:
        update = {
            (size, period): functools.partial(
                _update, session, steps[period], batches, size, period
            )
            for size, period in WAYS
        }
        print(json.dumps(measure(flags.rounds, update)))
        sys.stdout.flush()


def _update(session: Any, step: Any, batches: Any, size: int, period: int, updates: int) -> None:
    for _ in range(updates // size):
        indices = batches.next(size)
        if period > 1:
            indices = indices.reshape(size // period, period, BATCH_SIZE)
        session.run_many(step, indices)


def main() -> int:
    """Measures, and prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dataset", default="auto", help="as in experiments.mnist")
    for name in ("strategy", "run_token", "job_name", "ps_hosts", "worker_hosts"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    parser.add_argument("--task_index", type=int, help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.job_name:
        run_task(flags)
        return 0
    argv = [f"--rounds={flags.rounds}", f"--dataset={flags.dataset}"]
    with tempfile.TemporaryDirectory() as folder:
        done = local_cluster.train("benchmarks.calls", argv, 1, Path(folder), ["ps 0"])
    line = next(line for line in done.output.splitlines() if line.startswith("["))
    print("| " + " | ".join(HEADER) + " |")
    print("| " + " | ".join("-" * len(name) for name in HEADER) + " |")
    found = json.loads(line)
    alone = [wall for wall, _, _ in found[0][1]]
    for (size, period), rounds in found:
        ratios = [wall / one for (wall, _, _), one in zip(rounds, alone)]
        wall, worker, server = (median(column) for column in zip(*rounds))
        cells = [wall, median(ratios), min(ratios), max(ratios), worker, server]
        print(f"| {size} | {period} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
