"""The same losses, whatever computes them: NumPy, either runtime, alone or in a cluster.

`golden.json` is what `losses.py` prints on TensorFlow 1.15.5; it ties the releases together.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, List

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.conftest import RunProgram, StartCluster

HERE = Path(__file__).parent
PROGRAM = HERE / "losses.py"
GOLDEN: dict[str, dict[str, list[float]]] = json.loads((HERE / "golden.json").read_text("utf-8"))
LIFTED = "mlp_tf1"  # The network `mlp` once more, as a function of the TensorFlow 1.x kind.
STEPS = 30
AFTER_CALLS = [1, 2, 3, 4, 5, 25, 30]  # The global step after each call of `together.py`.
# In float32, of losses below 11, after thirty updates: five units of the last place. Each is held
# against the golden losses, so that two that pass differ by no more than 1e-5.
TOLERANCE = 5e-6

Losses = Dict[str, Dict[str, List[float]]]
Compare = Callable[[Dict[str, List[float]], str], None]


@pytest.fixture(scope="module")
def of_numpy() -> Losses:
    reference = [sys.executable, str(HERE / "reference.py")]
    printed = subprocess.run(reference, stdout=subprocess.PIPE, timeout=150, check=True)
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
        assert ps.wait().code == 0
    return found


@pytest.fixture
def compare(where: str, record_property: Callable[[str, Any], None]) -> Compare:
    """Holds losses, by optimizer, against the golden ones of a network; the page has the result."""

    def compare(found: dict[str, list[float]], network: str) -> None:
        assert all(len(losses) == STEPS for losses in found.values())
        golden = GOLDEN[network]
        largest = max(float(np.abs(np.subtract(found[k], golden[k])).max()) for k in found)
        record_property("difference", (where, largest))
        assert largest < TOLERANCE, network

    return compare


class Conformance:
    """What holds for every implementation; subclasses say where the losses come from."""

    networks = ["cnn", "mlp", LIFTED, "resnet"]

    def test_each_loss_is_the_golden_one(self, losses: Losses, compare: Compare) -> None:
        for network in set(losses) - {LIFTED}:
            compare(losses[network], network)

    def test_no_network_and_no_optimizer_is_left_out(self, losses: Losses) -> None:
        assert sorted(losses) == self.networks
        for network in set(self.networks) - {"cnn", "resnet"}:
            assert sorted(losses[network]) == ["adam", "momentum", "sgd"]


class TestReference(Conformance):
    """The network of 2016 only, its backpropagation written out in float64."""

    networks = ["mlp"]

    @pytest.fixture
    def losses(self, of_numpy: Losses) -> Losses:
        return of_numpy

    @pytest.fixture
    def where(self) -> str:
        return "NumPy"


class OnTensorFlow(Conformance):
    @pytest.mark.feature("lifted TF1 model")
    def test_a_model_of_the_old_kind_is_no_different(
        self, losses: Losses, compare: Compare
    ) -> None:
        compare(losses[LIFTED], "mlp")


@pytest.mark.feature
class TestOneProcess(OnTensorFlow):
    @pytest.fixture
    def losses(self, of_one_process: Losses) -> Losses:
        return of_one_process

    @pytest.fixture
    def where(self, runtime: str) -> str:
        return f"one process, {runtime}"


@pytest.mark.feature
class TestCluster(OnTensorFlow):
    """One parameter server and one worker: updates follow each other, as in one process."""

    @pytest.fixture
    def losses(self, of_a_cluster: Losses) -> Losses:
        return of_a_cluster

    @pytest.fixture
    def where(self, runtime: str) -> str:
        return f"cluster, {runtime}"


@pytest.mark.feature("sync")
@pytest.mark.parametrize("optimizer", [pytest.param("sgd", marks=pytest.mark.slow), "adam"])
def test_two_workers_together_are_one_on_their_whole_batch(
    start_cluster: StartCluster, runtime: str, optimizer: str
) -> None:
    # With one server a call makes several updates.
    number = 0 if runtime == "modern" else 2 if optimizer == "sgd" else 1
    servers = {"ps": number} if number else {}
    tasks = [("worker", 0), ("worker", 1), *[("ps", index) for index in range(number)]]
    for _ in range(3):
        with start_cluster(HERE / "together.py", runtime, worker=2, **servers) as cluster:
            workers = [cluster.start(*task, optimizer=optimizer) for task in tasks]
            reports = np.array([worker.report for worker in workers[:2]])
            assert all(worker.wait().code == 0 for worker in workers)
        # On a busy machine a worker makes both gradients of 1 in 60,000 updates, because it takes
        # the token of the other, as with TensorFlow's own optimizer. Then the losses are others.
        if (reports[:, :, 0] == AFTER_CALLS).all():
            break
    numbers, costs = np.mean(reports, axis=0).T
    assert numbers.tolist() == AFTER_CALLS
    golden = np.array(GOLDEN["mlp"][optimizer])[np.array(AFTER_CALLS) - 1]
    np.testing.assert_allclose(costs, golden, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("network", sorted(GOLDEN))
def test_the_golden_losses_fall(network: str) -> None:
    """Else the weights need not have been updated for all to agree; the labels are random."""
    for losses in GOLDEN[network].values():
        assert np.mean(losses[-5:]) < 0.99 * np.mean(losses[:5])
