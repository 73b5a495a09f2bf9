"""A parameter server, or a worker that makes null steps, of `benchmarks.null_steps`."""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any, Callable

from benchmarks.null_steps.model import KINDS, ROWS, WIDTH, Cell
from benchmarks.trainings import tasks
from compat import Server, Supervisor, tf, tf1
from compat.cluster import ports
from experiments import Experiment
from experiments.launching.devices import session_config

_WARM_UP, _LEAST = 3, 3  # Steps before the clock starts, and of a worker in a round.


def null_step(kind: str, servers: int, table: int) -> Any:
    """Returns the operation that is a step of a worker: it pulls, and pushes as much.

    Args:
      kind: what moves, of `KINDS`.
      servers: how many parameter servers it is on, in equal parts.
      table: rows of the table, of which a step needs a few.
    """
    updates = []
    for server in range(servers):
        there = f"/job:ps/task:{server}"
        rows, shape = None, [1 if kind == "scalar" else int(KINDS[kind] / 4 / servers)]
        if kind == "32 rows":
            shape = [table // servers, WIDTH]
            rows = tf.random.uniform([ROWS // servers], 0, shape[0], tf.int32)
        with tf1.device(there):
            name = f"{kind.replace(' ', '_')}/{servers}/{server}"
            variable = tf1.get_variable(name, shape, initializer=tf1.zeros_initializer())
            pulled = variable.read_value() if rows is None else tf.gather(variable, rows)
        pushed = pulled * 1e-9
        with tf1.device(there):
            if rows is None:
                updates.append(variable.assign_add(pushed, read_value=False))
            else:
                updates.append(variable.scatter_add(tf.IndexedSlices(pushed, rows)))
    return tf.group(*updates)


def barrier(workers: int, index: int) -> list[Any]:
    """Returns the operations that each worker runs, one after the other, to wait for all.

    Each worker leaves by a queue of its own: of a common one a quick worker would take, at the next
    barrier, what a slow one still has to take at this one, and all would wait for ever.
    """

    def queue(name: str) -> Any:
        return tf1.FIFOQueue(-1, [tf.int32], shapes=[[]], shared_name=name)

    with tf1.device("/job:ps/task:0"):
        arrived = queue("arrived")
        leaving = [queue(f"leaving {worker}") for worker in range(workers)]
        if index > 0:
            return [arrived.enqueue(0), leaving[index].dequeue()]
        with tf.control_dependencies([arrived.dequeue_many(workers - 1)]):
            return [tf.group(*[each.enqueue(0) for each in leaving[1:]])]


class Clock:
    """Measures the steps of this worker, and what the servers do meanwhile.

    Args:
      run: runs an operation.
      meet: those of a barrier.
      seconds: how long steps are made; at least so many are.
    """

    def __init__(self, run: Callable[[Any], Any], meet: list[Any], seconds: float) -> None:
        self._run, self._meet, self._seconds = run, meet, seconds
        beside = tasks(os.getppid()).items()
        self._servers = [process.pid for name, process in beside if name.startswith("ps ")]

    def _served(self) -> float:
        """Returns the processor time of the servers, once all workers are here."""
        for each in self._meet:
            self._run(each)
        # The clock of all threads of a process, in ns, as by clock_getcpuclockid(3) on Linux.
        return sum(time.clock_gettime(~pid << 3 | 2) for pid in self._servers)

    def measure(self, step: Any, warm_up: int) -> list[float]:
        """Returns steps, seconds, own processor seconds, and those of servers for all workers.

        Without a step this worker waits for the others.
        """
        for _ in range(warm_up if step else 0):
            self._run(step)
        before, steps = self._served(), 0
        wall, cpu = time.perf_counter(), time.process_time()
        while step and (steps < _LEAST or time.perf_counter() - wall < self._seconds):
            self._run(step)
            steps += 1
        spent = time.perf_counter() - wall, time.process_time() - cpu
        return [steps, *spent, self._served() - before]


def main() -> None:
    """Serves or measures; a worker prints a line of JSON for each of its cells and each round."""
    parser = argparse.ArgumentParser()
    for name in ("strategy", "run_token", "job_name", "ps_hosts", "worker_hosts", "cells"):
        parser.add_argument(f"--{name}")
    for name in ("task_index", "rounds", "table"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--seconds", type=float)
    flags = parser.parse_args()
    cells = [Cell(*each) for each in json.loads(flags.cells)]
    cluster = {"ps": flags.ps_hosts.split(","), "worker": flags.worker_hosts.split(",")}
    index, workers = flags.task_index, len(cluster["worker"])
    ports.release_inherited(int(cluster[flags.job_name][index].rpartition(":")[2]))
    config = session_config(Experiment.Settings(), sum(map(len, cluster.values())))
    server = Server(cluster, flags.job_name, index, runtime="legacy", config=config)
    if flags.job_name == "ps":
        server.join()
        return
    with tf1.device(f"/job:worker/task:{index}"):
        moved = sorted({(cell.kind, cell.servers) for cell in cells})
        steps = {each: null_step(*each, flags.table) for each in moved}
        meet = barrier(workers, index)
    supervisor = Supervisor(is_chief=server.is_chief, logdir=None, summary_op=None)
    server.wait_for_peers(everybody=True)
    with supervisor.managed_session(server.target) as session:
        clock = Clock(session.run, meet, flags.seconds)
        for turn in range(flags.rounds):
            for cell in cells:
                takes_part = index < cell.workers
                step = steps[cell.kind, cell.servers] if takes_part else None
                found = clock.measure(step, 0 if turn else _WARM_UP)
                if takes_part:
                    print(json.dumps([turn, cell, *found]), flush=True)


if __name__ == "__main__":
    main()
