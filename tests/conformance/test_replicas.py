"""Synchronous replicas of the modern runtime, whose table is on two parameter servers.

`golden_replica_rows.json` is what `replica_rows.py` prints on TensorFlow 1.15.5.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.conftest import StartCluster

pytestmark = [pytest.mark.once, pytest.mark.cluster]
HERE = Path(__file__).parent
GOLDEN: dict[str, Any] = json.loads((HERE / "golden_replica_rows.json").read_text("utf-8"))


@pytest.fixture(autouse=True)
def modern(runtimes: list[str]) -> None:
    if "modern" not in runtimes:
        pytest.skip("the legacy runtime has replicas of its own")


def assert_golden(found: Any) -> None:
    for seen, expected in zip(found, GOLDEN["momentum"]):
        for value, number in zip(seen, expected):
            np.testing.assert_allclose(value, number, rtol=0, atol=1e-5)


def test_replicas_of_two_servers_are_those_of_tensorflow(start_cluster: StartCluster) -> None:
    with start_cluster(HERE / "replica_program.py", "modern", ps=2, worker=2) as cluster:
        settings = {"optimizer": "momentum", "updates": 3}
        tasks = [cluster.start(*task, **settings) for task in [("ps", 0), ("ps", 1), ("worker", 1)]]
        found = cluster.start("worker", 0, **settings).report
        assert [task.wait().code for task in tasks] == [0, 0, 0]
    assert (len(found["homes"]), found["step"]) == (2, 3)
    assert_golden(found["seen"])


@pytest.mark.slow
def test_replicas_without_a_server_are_those_of_tensorflow(start_cluster: StartCluster) -> None:
    with start_cluster(HERE / "replica_program.py", "modern", worker=3) as cluster:
        settings = {"optimizer": "momentum", "updates": 3}
        tasks = [cluster.start("worker", index, **settings) for index in range(3)]
        for task in tasks:
            assert_golden(task.report["seen"])


@pytest.mark.slow
def test_a_worker_that_is_lost_holds_up_no_update(start_cluster: StartCluster) -> None:
    """Its call is made again by another worker, or by its successor."""
    with start_cluster(HERE / "replica_program.py", "modern", ps=2, worker=2) as cluster:
        settings = {"optimizer": "adagrad", "updates": 300}
        tasks = [cluster.start(*task, **settings) for task in [("ps", 0), ("ps", 1)]]
        lost = cluster.start("worker", 1, **settings)
        chief = cluster.start("worker", 0, **settings)
        chief.wait_until_it_says("updated\n" * 20)
        lost.send(signal.SIGKILL)
        lost.wait()
        cluster.restart("worker", 1, **settings)  # It may come when all updates are made.
        found = chief.report
        assert [task.wait().code for task in tasks] == [0, 0]
    # The call that makes an update may have made it before its worker was lost, and is made again.
    assert 300 <= found["step"] <= 301
    assert np.isfinite(found["seen"][-1][0]).all()
