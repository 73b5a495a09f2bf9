"""One replica of `benchmarks.together` in PyTorch: DistributedDataParallel over gloo."""

from __future__ import annotations

import argparse
import json
import os
import time

import numpy as np
import torch  # type: ignore[import-not-found]
from torch import distributed, nn

BATCH_SIZE, WARM_UP = 100, 300


def main() -> None:
    """Trains the network of 2016 on random images; prints as `together_task.measure` does."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--task_index", type=int, required=True)
    parser.add_argument("--worker_hosts", required=True)
    parser.add_argument("--updates", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    flags, _ = parser.parse_known_args()
    hosts = flags.worker_hosts.split(",")
    os.environ["MASTER_ADDR"], _, os.environ["MASTER_PORT"] = hosts[0].rpartition(":")
    torch.set_num_threads(1)  # Two, the default, are slower on two cores.
    distributed.init_process_group("gloo", rank=flags.task_index, world_size=len(hosts))
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(784, 100), nn.Sigmoid(), nn.Linear(100, 10))
    replica = nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(replica.parameters(), lr=0.001)
    random = np.random.RandomState(flags.task_index)
    images = torch.from_numpy(random.randint(0, 256, (55000, 784)).astype(np.uint8))
    labels = torch.from_numpy(random.randint(0, 10, 55000))
    loss = nn.CrossEntropyLoss()

    def update(updates: int) -> None:
        for _ in range(updates):
            batch = torch.from_numpy(random.randint(55000, size=BATCH_SIZE))
            optimizer.zero_grad()
            loss(replica(images[batch].float() / 255.0), labels[batch]).backward()
            optimizer.step()

    update(WARM_UP)
    for _ in range(flags.rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        update(flags.updates)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(json.dumps([1e3 * wall / flags.updates, 1e3 * cpu / flags.updates, 0.0]), flush=True)


if __name__ == "__main__":
    main()
