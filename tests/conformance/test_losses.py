"""The same losses, whatever computes them: NumPy, either runtime, alone or in a cluster.

`golden.json` is what `losses.py` prints on TensorFlow 1.15.5; it ties the releases together.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Dict, List

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.conftest import RunProgram, StartCluster

HERE = Path(__file__).parent
PROGRAM = HERE / "losses.py"
GOLDEN: dict[str, dict[str, list[float]]] = json.loads((HERE / "golden.json").read_text("utf-8"))
SAME_AS = {"mlp_tf1": "mlp"}  # Another definition of the same network.
TOLERANCE = 1e-5  # float32, losses below 11, thirty updates.

Losses = Dict[str, Dict[str, List[float]]]


@pytest.fixture(scope="module")
def of_numpy() -> Losses:
    reference = [sys.executable, str(HERE / "reference.py")]
    printed = subprocess.run(reference, stdout=subprocess.PIPE, timeout=60, check=True)
    return {"mlp": json.loads(printed.stdout.decode())}


@pytest.fixture(scope="module")
def of_one_process(run_program: RunProgram, runtime: str) -> Losses:
    found: Losses = run_program(PROGRAM, runtime=runtime)
    return found


@pytest.fixture(scope="module")
def of_a_cluster(start_cluster: StartCluster, runtime: str) -> Losses:
    with start_cluster(PROGRAM, runtime, ps=1, worker=1) as cluster:
        ps, worker = cluster.start("ps"), cluster.start("worker")
        found: Losses = worker.report
        assert ps.wait(30).code == 0
    return found


class Conformance:
    """What holds for every implementation; subclasses say where the losses come from."""

    networks = ["cnn", "mlp", "mlp_tf1"]

    def test_each_loss_is_the_golden_one(self, losses: Losses) -> None:
        for network, by_optimizer in losses.items():
            for optimizer, found in by_optimizer.items():
                expected = GOLDEN[SAME_AS.get(network, network)][optimizer]
                np.testing.assert_allclose(
                    found, expected, rtol=0, atol=TOLERANCE, err_msg=f"{network} {optimizer}"
                )

    def test_no_network_and_no_optimizer_is_left_out(self, losses: Losses) -> None:
        assert sorted(losses) == self.networks
        for network in set(self.networks) - {"cnn"}:
            assert sorted(losses[network]) == ["adam", "momentum", "sgd"]


class TestReference(Conformance):
    """The network of 2016 only, its backpropagation written out in float64."""

    networks = ["mlp"]

    @pytest.fixture
    def losses(self, of_numpy: Losses) -> Losses:
        return of_numpy


class TestOneProcess(Conformance):
    @pytest.fixture
    def losses(self, of_one_process: Losses) -> Losses:
        return of_one_process


class TestCluster(Conformance):
    """One parameter server and one worker: updates follow each other, as in one process."""

    @pytest.fixture
    def losses(self, of_a_cluster: Losses) -> Losses:
        return of_a_cluster


@pytest.mark.parametrize("optimizer", [pytest.param("sgd", marks=pytest.mark.slow), "adam"])
def test_two_workers_together_are_one_on_their_whole_batch(
    start_cluster: StartCluster, runtime: str, optimizer: str
) -> None:
    servers = {"ps": 1} if runtime == "legacy" else {}
    with start_cluster(HERE / "together.py", runtime, worker=2, **servers) as cluster:
        tasks = [("worker", 0), ("worker", 1), *[("ps", 0) for _ in servers]]
        workers = [cluster.start(*task, optimizer=optimizer) for task in tasks]
        costs = np.mean([worker.report for worker in workers[:2]], axis=0)
        assert all(worker.wait(30).code == 0 for worker in workers)
    np.testing.assert_allclose(costs, GOLDEN["mlp"][optimizer], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("network", sorted(GOLDEN))
def test_the_golden_losses_fall(network: str) -> None:
    """Else the weights need not have been updated for all to agree."""
    for losses in GOLDEN[network].values():
        assert np.mean(losses[-5:]) < 0.9 * np.mean(losses[:5])
