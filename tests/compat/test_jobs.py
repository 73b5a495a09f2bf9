"""Jobs may have names of their own, in sessions of every kind, on both runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import StartCluster

pytestmark = [pytest.mark.cluster, pytest.mark.once]

PROGRAM = Path(__file__).with_name("programs") / "job_names.py"
CASES = [
    ({"ps": 1, "master": 1, "learner": 1}, "MonitoredSession"),
    pytest.param(
        {"ps": 1, "master": 1, "trainer": 1}, "SingularMonitoredSession", marks=pytest.mark.slow
    ),
    *(
        pytest.param({"ps": 1, job: 2}, session, marks=pytest.mark.slow)
        for job in ("learner", "trainer", "worker")
        for session in ("Supervisor", "MonitoredTrainingSession", "MonitoredSession")
    ),
]


@pytest.mark.parametrize(("jobs", "session"), CASES)
def test_jobs_of_any_name_train(
    start_cluster: StartCluster, runtime: str, jobs: dict[str, int], session: str
) -> None:
    tasks = [(job, index) for job, count in jobs.items() for index in range(count)]
    with start_cluster(PROGRAM, runtime, **jobs) as cluster:
        started: dict[tuple[str, int], Any] = {
            task: cluster.start(*task, session=session) for task in tasks
        }
        reports = {task: process.report for task, process in started.items()}
    first = "master" if "master" in jobs else tasks[-1][0]
    chief = reports[first, 0]
    assert chief["chief"]
    if runtime == "legacy":
        assert [report["task"] for report in reports.values()] == [
            "/job:{}/task:{}".format(*task) for task in tasks
        ]
        assert chief["devices"] == sorted(["/job:ps/task:0", f"/job:{first}/task:0"])
    else:  # As TensorFlow 2's strategies call them.
        assert chief["task"] == f"/job:{'chief' if first == 'master' else 'worker'}/task:0"
        assert chief["devices"] == ["/job:ps/task:0"]
        assert all("chief" not in report for task, report in reports.items() if task != (first, 0))
