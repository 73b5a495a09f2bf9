"""Graphs of TensorFlow 1.x in a cluster, by the names of compat, on the modern runtime."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat._tensorflow import coordinator_module
from compat.runtime.graphs.cluster import sees_variables_of_others

if TYPE_CHECKING:
    from tests.conftest import StartCluster

HAS_MODERN = coordinator_module() is not None and sees_variables_of_others()
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.once,
    pytest.mark.long,
    pytest.mark.skipif(not HAS_MODERN, reason="one program in a cluster before TensorFlow 2.8"),
]


def test_each_worker_trains_what_servers_store(
    start_cluster: StartCluster, programs: Path, tmp_path: Path
) -> None:
    with start_cluster(programs / "task.py", "modern", ps=2, worker=2) as cluster:
        settings = {"graph": True, "steps": 60, "logdir": str(tmp_path)}
        servers = [cluster.start("ps", 0, graph=True), cluster.start("ps", 1, graph=True)]
        workers = [cluster.start("worker", i, **settings) for i in range(2)]
        for worker in workers:
            assert worker.report["role"].startswith("TRAIN"), worker.complaints
            assert worker.report["devices"] == ["/job:ps/task:0", "/job:ps/task:1"]
            assert worker.report["weights"] == pytest.approx([1.0] * 4, abs=1e-3)
        assert [task.wait().code for task in [*servers, *workers]] == [0] * 4
        assert sum(len(worker.report["costs"]) for worker in workers) >= 60
    assert list(tmp_path.glob("model.ckpt-*.index"))
    assert list(tmp_path.glob("events.*"))


def test_a_lost_server_is_named(start_cluster: StartCluster, programs: Path) -> None:
    with start_cluster(programs / "task.py", "modern", ps=1, worker=1) as cluster:
        server = cluster.start("ps", 0, graph=True)
        worker = cluster.start("worker", 0, graph=True, steps=10**6, pause=0.01)
        worker.wait_until_it_says("training")
        server.send(signal.SIGKILL)
        assert worker.report["exit_code"] == 138
        assert "ps" in worker.report["lost"]
