"""Clusters that train and end of themselves, whatever the order in which their tasks start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict

import pytest

if TYPE_CHECKING:
    from tests.conftest import Process, StartCluster

pytestmark = [pytest.mark.cluster, pytest.mark.endings]

END_SECS = 60.0  # Within which those who serve have ended, after the last of those who train.
Tasks = Dict[str, "Process"]


def assert_all_end_of_themselves(tasks: Tasks, *trainers: str) -> None:
    assert {name: task.code for name, task in tasks.items()} == dict.fromkeys(tasks, 0)
    end = max(tasks[name].ended for name in trainers)
    assert max(task.ended for task in tasks.values()) - end < END_SECS


@pytest.fixture(scope="module")
def resumed(
    start_cluster: StartCluster,
    programs: Path,
    runtime: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Tasks:
    """Two parameter servers, which start last, and two workers that go on at step 100."""
    logdir = str(tmp_path_factory.mktemp("resumed"))
    with start_cluster(programs / "task.py", runtime, ps=2, worker=2) as cluster:
        settings: dict[str, Any] = {"steps": 130, "pause": 0.1, "logdir": logdir, "resume": True}
        # The other worker is there before the chief has restored anything.
        chief = cluster.start("worker", 0, delay=2, **settings)
        tasks = {"worker 0": chief, "worker 1": cluster.start("worker", 1, **settings)}
        waiting = "worker 1" if runtime == "legacy" else "worker 0"
        tasks[waiting].wait_until_it_says(" of 120 s)")  # Seconds after it began.
        tasks["ps 1"], tasks["ps 0"] = cluster.start("ps", 1), cluster.start("ps", 0)
        for task in tasks.values():
            task.wait()
    return tasks


@pytest.mark.slow
class TestResumedTraining:
    def test_all_end_of_themselves(self, resumed: Tasks, runtime: str) -> None:
        trainers = ["worker 0", "worker 1"] if runtime == "legacy" else ["worker 0"]
        assert_all_end_of_themselves(resumed, *trainers)

    def test_who_waits_says_for_whom(self, resumed: Tasks, runtime: str) -> None:
        said = resumed["worker 1" if runtime == "legacy" else "worker 0"].said
        for index in (0, 1):
            assert f"waiting for /job:ps/task:{index} at 127.0.0.1:" in said

    def test_who_serves_says_so(self, resumed: Tasks, runtime: str) -> None:
        serving = ["ps 0", "ps 1"] if runtime == "legacy" else ["ps 0", "ps 1", "worker 1"]
        for name in serving:
            job, index = name.split()
            assert resumed[name].said.startswith(f"/job:{job}/task:{index} serves at 127.0.0.1:")

    def test_nobody_sees_weights_that_were_not_restored(self, resumed: Tasks, runtime: str) -> None:
        for name in ["worker 0", "worker 1"] if runtime == "legacy" else ["worker 0"]:
            step, marker = resumed[name].report["first"]
            assert step >= 100
            assert marker == 7

    def test_the_training_goes_on_to_its_end(self, resumed: Tasks) -> None:
        steps = resumed["worker 0"].report["steps"]
        assert min(steps) > 100
        assert max(steps) >= 129  # The other worker may have made the last.

    def test_a_server_tells_what_its_task_is(self, resumed: Tasks, runtime: str) -> None:
        chief = resumed["worker 0"].report
        role = {"legacy": "TRAIN_AS_CHIEF", "modern": "SERVE_AND_COORDINATE"}[runtime]
        assert (chief["role"], chief["is_chief"], chief["trainer_index"]) == (role, True, 0)
        assert chief["num_workers"] == 2
        assert chief["target"].startswith("grpc://")
        assert chief["has_server"]
        if runtime == "legacy":
            other = resumed["worker 1"].report
            assert (other["role"], other["is_chief"]) == ("TRAIN", False)
            assert other["trainer_index"] == 1

    def test_who_trains_cannot_join(self, resumed: Tasks, runtime: str) -> None:
        assert resumed["worker 0"].report["join"] == (
            f"/job:worker/task:0 trains on the {runtime} runtime; call join() only where "
            "server.serves is true"
        )

    def test_a_port_has_one_server(self, resumed: Tasks) -> None:
        report = resumed["worker 0"].report
        address = report["target"][len("grpc://") :]
        port = address.rpartition(":")[2]
        assert report["again"].endswith(
            "is in use on this machine; stop the process or choose another port"
        )
        assert report["again"].startswith(f"port {port} of ")


@pytest.fixture(scope="module")
def of_2016(start_cluster: StartCluster, programs: Path, runtime: str) -> Tasks:
    """A cluster with a chief, as TF_CONFIG has it, of a program as they were written in 2016."""
    with start_cluster(programs / "task.py", runtime, chief=1, ps=1, worker=1) as cluster:
        settings = {"steps": 30, "of_2016": True, "pause": 0.05}
        tasks = {job: cluster.start(job, **settings) for job in ("worker", "chief", "ps")}
        for task in tasks.values():
            task.wait()
    return tasks


class TestProgramOf2016:
    def test_all_end_of_themselves(self, of_2016: Tasks, runtime: str) -> None:
        trainers = ["chief", "worker"] if runtime == "legacy" else ["chief"]
        assert_all_end_of_themselves(of_2016, *trainers)

    def test_the_chief_trains_or_coordinates(self, of_2016: Tasks, runtime: str) -> None:
        report = of_2016["chief"].report
        role = {"legacy": "TRAIN_AS_CHIEF", "modern": "COORDINATE"}[runtime]
        assert (report["role"], report["is_chief"]) == (role, True)
        assert report["num_workers"] == {"legacy": 2, "modern": 1}[runtime]
        assert report["has_server"] == (runtime == "legacy")
        assert max(report["steps"]) >= 29

    def test_a_worker_trains_or_serves_where_it_would_train(
        self, of_2016: Tasks, runtime: str
    ) -> None:
        report = of_2016["worker"].report
        if runtime == "legacy":
            assert report["role"] == "TRAIN"
            assert report["first"][0] >= 0
        else:
            assert report == {"steps": []}
            assert "serves at" in of_2016["worker"].said


@pytest.fixture(scope="module")
def synchronous(start_cluster: StartCluster, programs: Path) -> Tasks:
    with start_cluster(programs / "task.py", "legacy", ps=1, worker=2) as cluster:
        settings = {"steps": 20, "sync": True}
        tasks = {f"worker {i}": cluster.start("worker", i, **settings) for i in (0, 1)}
        tasks["ps"] = cluster.start("ps")
        for task in tasks.values():
            task.wait()
    return tasks


@pytest.mark.once
def test_a_synchronous_training_ends_of_itself(synchronous: Tasks) -> None:
    """Of replicas whose gradients are averaged, on the legacy runtime, which alone has them."""
    assert_all_end_of_themselves(synchronous, "worker 0", "worker 1")
    reports = [synchronous[name].report for name in ("worker 0", "worker 1")]
    assert not [report for report in reports if "lost" in report]
    steps = [report["steps"] for report in reports]
    assert max(sum(steps, [])) == 20  # A fast worker may have made all of them.


@pytest.mark.cluster
@pytest.mark.long
@pytest.mark.parametrize("of_2016", [False, True])
def test_a_replica_that_has_left_is_not_waited_for(
    start_cluster: StartCluster, programs: Path, of_2016: bool
) -> None:
    with start_cluster(programs / "task.py", "legacy", ps=1, worker=2) as cluster:
        chief = cluster.start("worker", 0, steps=40, sync=True, of_2016=of_2016)
        other = cluster.start("worker", 1, steps=5, sync=True, of_2016=of_2016)
        cluster.start("ps")
        codes = [task.wait().code for task in (chief, other)]
    assert codes == [0, 0], chief.complaints + other.complaints
    assert chief.report["steps"][-1] == 40
    assert 5 <= other.report["steps"][-1] < 40
