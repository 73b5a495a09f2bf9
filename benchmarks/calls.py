"""What an update on a parameter server costs by how many are made in a call of the session.

    python -m benchmarks.calls --workers=1 --rounds=7

One worker measures one size after the other, in rounds, within one training of the network of
2016; the other workers do the same beside it. Processor time is of worker 0, and of the parameter
server per update of any worker. It is the steadier figure where a machine is shared. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import local_cluster
from benchmarks.task import BATCH_SIZE, LEARNING_RATE

SIZES = (1, 5, 20)
UPDATES = 400  # Of worker 0, by calls of one size in one round.
HEADER = ["updates in a call", "ms an update", "to one a call", "lowest", "highest"]
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


def measure(rounds: int, update: Any, global_step: Any) -> dict[int, list[list[float]]]:
    """Returns wall time, and processor time of both tasks, in ms an update, by size and round."""
    server = parameter_server()
    update(_WARM_UP, 1)
    for size in SIZES:
        update(size, size)  # The session optimizes what a call of a new size runs.
    found: dict[int, list[list[float]]] = {size: [] for size in SIZES}
    for _ in range(rounds):
        for size in SIZES:
            step, wall = global_step(), time.perf_counter()
            mine, servers = time.process_time(), cpu_seconds(server)
            update(UPDATES, size)
            wall, mine = time.perf_counter() - wall, time.process_time() - mine
            made = global_step() - step
            servers = cpu_seconds(server) - servers
            found[size].append([1e3 * wall / made, 1e3 * mine / UPDATES, 1e3 * servers / made])
    return found


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
    settings = MNIST.Settings(
        batch_size=BATCH_SIZE,
        optimizer="sgd",
        learning_rate=LEARNING_RATE,
        initial="normal",
        dataset=flags.dataset,
    )
    experiment = MNIST(settings)
    data = data_of(experiment.data())
    schedule = Schedule(550, server.num_workers, None, max(SIZES), 100)
    step = program.build(experiment, data, server, schedule).train
    supervisor = compat.Supervisor(is_chief=server.is_chief, logdir=None, summary_op=None)
    batches = Batches(len(data.train["labels"]), BATCH_SIZE, 1, flags.task_index)
    counter = compat.get_or_create_global_step()
    if server.is_chief:
        server.wait_for_peers(everybody=True)
    with supervisor.managed_session(server.target) as session:

        def update(updates: int, size: int) -> None:
            for _ in range(updates // size):
                session.run_many(step, batches.next(size))

        while not server.is_chief:  # Until who started it ends it.
            update(max(SIZES), max(SIZES))
        print(json.dumps(measure(flags.rounds, update, lambda: int(session.run(counter)))))
        sys.stdout.flush()


def main() -> int:
    """Measures, and prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--dataset", default="auto", help="as in experiments.mnist")
    for name in ("strategy", "run_token", "job_name", "ps_hosts", "worker_hosts"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    parser.add_argument("--task_index", type=int, help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.job_name:
        run_task(flags)
        return 0
    argv = [f"--rounds={flags.rounds}", f"--dataset={flags.dataset}"]
    endless = ["ps 0", *(f"worker {index}" for index in range(1, flags.workers))]
    with tempfile.TemporaryDirectory() as folder:
        done = local_cluster.train("benchmarks.calls", argv, flags.workers, Path(folder), endless)
    line = next(line for line in done.output.splitlines() if line.startswith("{"))
    print("| " + " | ".join(HEADER) + " |")
    print("| " + " | ".join("-" * len(name) for name in HEADER) + " |")
    found = json.loads(line)
    alone = [wall for wall, _, _ in found["1"]]
    for size, rounds in found.items():
        ratios = [wall / one for (wall, _, _), one in zip(rounds, alone)]
        wall, worker, server = (median(column) for column in zip(*rounds))
        cells = [median(ratios), min(ratios), max(ratios), worker, server]
        print(f"| {size} | {wall:.2f} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
