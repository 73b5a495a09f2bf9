"""The network of 2016 in PyTorch: one process or, with several workers, DDP over gloo.

The images are random, as speed does not depend on them. A step of N workers counts as N updates.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any, Callable, Sequence

import numpy as np
import torch
from torch import distributed, nn


def trainer(index: int, hosts: Sequence[str]) -> Callable[[], Any]:
    """Returns what makes an update, of all workers together, and gives the cost as a tensor."""
    torch.set_num_threads(1)  # Two are slower on two cores.
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(784, 100), nn.Sigmoid(), nn.Linear(100, 10))
    if len(hosts) > 1:
        os.environ["MASTER_ADDR"], _, os.environ["MASTER_PORT"] = hosts[0].rpartition(":")
        distributed.init_process_group("gloo", rank=index, world_size=len(hosts))
        network = nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001)
    random = np.random.RandomState(index)
    images = torch.from_numpy(random.randint(0, 256, (55000, 784)).astype(np.uint8))
    labels = torch.from_numpy(random.randint(0, 10, 55000))
    loss = nn.CrossEntropyLoss()

    def update() -> Any:
        batch = torch.from_numpy(random.randint(55000, size=100))
        optimizer.zero_grad()
        cost = loss(network(images[batch].float() / 255.0), labels[batch])
        cost.backward()
        optimizer.step()
        return cost

    return update


def main() -> None:
    """Trains as one worker; a parameter server, which it does not need, exits."""
    parser = argparse.ArgumentParser()
    for name in ("task_index", "max_steps", "warm_up"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("job_name", "worker_hosts"):
        parser.add_argument(f"--{name}", required=True)
    flags, _ = parser.parse_known_args()
    if flags.job_name == "ps":
        return
    hosts = flags.worker_hosts.split(",")
    update = trainer(flags.task_index, hosts)
    clock: dict[str, list[float]] = {"steps": [], "times": [], "costs": []}
    for step in range(0, flags.max_steps + 1, len(hosts)):
        cost = update()
        if step >= flags.warm_up and (not clock["steps"] or step + len(hosts) > flags.max_steps):
            clock["steps"].append(step)
            clock["times"].append(time.time())
            clock["costs"].append(cost.item())
    print(json.dumps(clock))


if __name__ == "__main__":
    main()
