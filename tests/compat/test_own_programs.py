"""A program of `compat` without a step runs in each task that trains, on either runtime."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.runtime.graphs.cluster import sees_variables_of_others

if TYPE_CHECKING:
    from tests.conftest import StartCluster

pytestmark = [pytest.mark.cluster, pytest.mark.core]


def test_each_task_trains_in_session_after_session(
    start_cluster: StartCluster, programs: Path, runtime: str
) -> None:
    with start_cluster(programs / "own_programs.py", runtime, ps=1, chief=1, worker=1) as cluster:
        server = cluster.start("ps")
        tasks = [cluster.start("worker"), cluster.start("chief")]
        if runtime == "modern" and not sees_variables_of_others():
            for task in tasks:
                assert task.wait().code == 2
                assert "use --runtime=legacy, or a newer TensorFlow" in task.complaints
            return
        for task, is_chief in zip(tasks, (False, True)):
            report = task.report
            first, last = report.pop("found")
            # The other task may be in its second session already, and make ten updates there.
            assert (20 <= first <= 30, last) == (True, 40)
            assert report == {"is_chief": is_chief, "serves": False}
        assert server.wait().code == 0
