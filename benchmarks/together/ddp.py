"""One replica of `benchmarks.together` in PyTorch: DistributedDataParallel over gloo."""

from __future__ import annotations

import argparse
import json
import time

from benchmarks.updates.twin_torch import trainer

WARM_UP = 300


def main() -> None:
    """Trains the network of 2016 on random images; prints as `task.measure` does."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--task_index", type=int, required=True)
    parser.add_argument("--worker_hosts", required=True)
    parser.add_argument("--updates", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    flags, _ = parser.parse_known_args()
    update = trainer(flags.task_index, flags.worker_hosts.split(","))
    for _ in range(WARM_UP):
        update()
    for _ in range(flags.rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(flags.updates):
            update()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(json.dumps([1e3 * wall / flags.updates, 1e3 * cpu / flags.updates, 0.0]), flush=True)


if __name__ == "__main__":
    main()
