"""A task that is lost: who needs it says so, and by its name."""

from __future__ import annotations

import re
import signal
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat import tf1
from compat.cluster.liveness.diagnosis import peer_error
from compat.cluster.spec import ClusterSpec, Task
from compat.errors import PeerError
from compat.runtime.program.replicas import adds_gradients

if TYPE_CHECKING:
    from tests.conftest import StartCluster

pytestmark = [pytest.mark.cluster, pytest.mark.endings, pytest.mark.long]

NOTICE_SECS = 120.0


@pytest.fixture(scope="module")
def lost(start_cluster: StartCluster, programs: Path, runtime: str) -> dict[str, Any]:
    """What a trainer says whose parameter server is killed, and after how many seconds."""
    with start_cluster(programs / "task.py", runtime, ps=1, worker=1) as cluster:
        ps, worker = cluster.start("ps"), cluster.start("worker", steps=100000, pause=0.02)
        worker.wait_until_it_says("training")
        ps.send(signal.SIGKILL)
        begin = time.monotonic()
        report: dict[str, Any] = worker.wait(NOTICE_SECS).report
        return {**report, "address": cluster.addresses["ps"][0], "secs": worker.ended - begin}


def test_the_lost_task_is_named(lost: dict[str, Any]) -> None:
    assert lost["lost"] == (
        f"lost /job:ps/task:0 at {lost['address']}; start it again and then this task: training "
        "resumes from the last checkpoint"
    )


def test_cluster_managers_may_try_again(lost: dict[str, Any]) -> None:
    assert lost["exit_code"] == PeerError.exit_code == 138


def test_it_is_noticed_soon(lost: dict[str, Any]) -> None:
    assert lost["secs"] < NOTICE_SECS


@pytest.mark.once
@pytest.mark.parametrize(
    ("victim", "message"),
    [
        ("ps", "lost /job:ps/task:0 at {}; start it again and then this task: .*"),
        ("worker", "no connection within 5 s to /job:worker/task:0 at {}: refused, start .*"),
    ],
)
def test_one_is_lost_before_the_variables_have_values(
    start_cluster: StartCluster, programs: Path, victim: str, message: str
) -> None:
    """TensorFlow would wait for ever: for the parameter server, or for the chief's values."""
    with start_cluster(programs / "task.py", "legacy", ps=1, worker=2) as cluster:
        first = {"ps": cluster.start("ps"), "worker": cluster.start("worker", delay=1000)}
        second = cluster.start("worker", 1, steps=1, rendezvous_timeout=5)
        first["ps"].wait_until_it_says("serves at")
        first["worker"].wait_until_it_says("built")
        second.wait_until_it_says("opening a session")
        time.sleep(3)  # It meets the others, and goes on to wait for the values.
        first[victim].send(signal.SIGKILL)
        report = second.wait(NOTICE_SECS).report
        assert re.fullmatch(message.format(cluster.addresses[victim][0]), report["lost"])
        assert report["exit_code"] == PeerError.exit_code


@pytest.mark.once
def test_a_replica_that_others_wait_for_is_named(
    start_cluster: StartCluster, programs: Path
) -> None:
    """TensorFlow would wait for its gradients for ever, in silence."""
    with start_cluster(programs / "task.py", "legacy", ps=1, worker=2) as cluster:
        settings = {"steps": 100000, "pause": 0.02, "sync": True, "rendezvous_timeout": 8}
        cluster.start("ps")
        chief, other = [cluster.start("worker", i, **settings) for i in (0, 1)]
        for task in (chief, other):
            task.wait_until_it_says("training")
        other.send(signal.SIGKILL)
        report = chief.wait(NOTICE_SECS).report
        place = f"/job:worker/task:1 at {cluster.addresses['worker'][1]}"
    assert f"waiting for {place}: refused (" in chief.said
    assert report["lost"].startswith(f"no connection within 8 s to {place}: refused, start ")
    assert report["exit_code"] == PeerError.exit_code


@pytest.mark.once
def test_replicas_wait_for_a_chief_that_was_stopped(
    start_cluster: StartCluster, programs: Path
) -> None:
    """Its stop is no end of the data for them, and it finds the queue of tokens open."""
    with start_cluster(programs / "task.py", "legacy", ps=1, worker=2) as cluster:
        settings = {"steps": 300, "pause": 0.02, "sync": True, "exits": True}
        server = cluster.start("ps")
        chief, other = [cluster.start("worker", i, **settings) for i in (0, 1)]
        for task in (chief, other):
            task.wait_until_it_says("training")
        chief.send(signal.SIGTERM)
        assert chief.wait().code == 128 + signal.SIGTERM
        other.wait_until_it_says("waiting for /job:worker/task:0 at ")
        chief = cluster.restart("worker", 0, **settings)
        codes = [task.wait().code for task in (chief, other, server)]
    assert codes == [0, 0, 0], chief.complaints + other.complaints
    assert len([step for step in chief.report["steps"] if 290 <= step < 300]) >= 5
    assert max(other.report["steps"]) >= 300


def test_only_calls_that_add_gradients_wait_for_replicas() -> None:
    """A long evaluation continues after the other replicas have ended."""
    with tf1.Graph().as_default():
        step = tf1.train.get_or_create_global_step()
        weight = tf1.get_variable("weight", initializer=1.0)
        loss = weight * weight
        plain = tf1.train.GradientDescentOptimizer(0.1)
        train = tf1.train.SyncReplicasOptimizer(plain, 2).minimize(loss, global_step=step)
        assert adds_gradients([{"train": train}, step])
        assert adds_gradients(
            {"caller": step, tf1.train.StepCounterHook(): {None: train, "": step}}
        )
        assert not adds_gradients({"loss": loss, "step": step})
        update = plain.minimize(loss, global_step=step)
        assert not adds_gradients(update)


# As TensorFlow 2.21 says it to worker 0, which is the one that has noticed.
SOCKET_CLOSED = """Graph execution error:

=====================
UNAVAILABLE: From /job:worker/replica:0/task:0:
Socket closed
Additional GRPC error information from remote target /job:ps/replica:0/task:0 while calling \
/tensorflow.WorkerService/RecvTensor:
"""


def _listen(server: socket.socket) -> str:
    """Lets it take calls; returns its address."""
    server.bind(("127.0.0.1", 0))
    server.listen()
    return f"127.0.0.1:{server.getsockname()[1]}"


def test_a_port_that_closes_late_is_not_back() -> None:
    """The system closes the connections of a process that is killed one by one, the port last."""
    with socket.socket() as ps, socket.socket() as worker:
        cluster = ClusterSpec({"ps": [_listen(ps)], "worker": [_listen(worker)]})
        # By `close` alone it would still listen while a call waits there.
        closing = threading.Timer(0.3, lambda: ps.shutdown(socket.SHUT_RDWR))
        closing.start()
        error = tf1.errors.UnavailableError(None, None, SOCKET_CLOSED)
        lost = str(peer_error(error, cluster, own=Task("worker", 0)))
        closing.join()
    assert lost.startswith(f"lost /job:ps/task:0 at {cluster.task_address('ps', 0)}; start it ")


def test_who_is_back_is_named_and_never_this_very_task() -> None:
    """It was started again before anybody looked."""
    with socket.socket() as worker, socket.socket() as ps:
        own, other = _listen(worker), _listen(ps)
        cluster = ClusterSpec({"worker": [own], "ps": [other]})
        for told, expected in (
            (SOCKET_CLOSED, f"/job:ps/task:0 at {other}, which is back (Socket closed)"),
            (
                "From /job:worker/replica:0/task:0:\nBroken pipe",
                "a task of the cluster (Broken pipe)",
            ),
        ):
            error = tf1.errors.UnavailableError(None, None, told)
            lost = peer_error(error, cluster, own=Task("worker", 0))
            assert str(lost).startswith(f"lost {expected}; start it again and then this task: ")
