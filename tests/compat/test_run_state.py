"""What a session, an exit code and the end of a process mean for the cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat import errors
from compat.cluster.liveness import run_state

if TYPE_CHECKING:
    from tests.conftest import RunProgram, StartCluster

PACKAGES = str(Path(run_state.__file__).resolve().parents[2])
PROGRAM = Path(__file__).with_name("programs") / "sessions_in_turn.py"


@pytest.mark.cluster
@pytest.mark.once
@pytest.mark.long
@pytest.mark.parametrize(
    "sessions", [["supervised", "supervised"], ["monitored", "supervised", "monitored"]]
)
def test_a_process_opens_several_sessions(
    start_cluster: StartCluster, tmp_path: Path, runtime: str, sessions: list[str]
) -> None:
    settings = {"sessions": sessions, "steps": 3, "logdir": str(tmp_path)}
    trains = runtime == "legacy"  # The other worker; else it serves the first until that has ended.
    with start_cluster(PROGRAM, runtime, ps=1, worker=2) as cluster:
        ps = cluster.start("ps")
        chief = cluster.start("worker", 0, **settings)
        worker = cluster.start("worker", 1, **settings)
        losses = chief.report
        assert [len(each) for each in losses] == [3] * len(sessions)
        assert [len(each) for each in worker.report] == [3 * trains] * len(sessions)
        assert ps.report == "succeeded"
    if not trains:  # Nobody else updates the weight.
        each = [loss for session in losses for loss in session]
        assert each == sorted(each, reverse=True)  # Each session continues the one before.


@pytest.mark.cluster
@pytest.mark.once
@pytest.mark.long
def test_a_later_session_does_without_the_chief(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    """It has given the variables their values; on the legacy runtime, where each worker trains."""
    settings = {"steps": 3, "logdir": str(tmp_path)}
    over = tmp_path / "over"
    with start_cluster(PROGRAM, "legacy", ps=1, worker=2) as cluster:
        ps = cluster.start("ps")
        worker = cluster.start(
            "worker", 1, **settings, sessions=["monitored", "supervised"], waits_for=str(over)
        )
        chief = cluster.start("worker", 0, **settings, sessions=["supervised"], pause=1)
        worker.wait_until_it_says("left a session")
        assert chief.wait().code == 0
        over.touch()
        assert [len(losses) for losses in worker.report] == [3, 3]
        assert ps.report == "succeeded"


@pytest.mark.cluster
@pytest.mark.once
@pytest.mark.long
@pytest.mark.parametrize(("session", "code"), [("supervised", 0), ("monitored", None)])
def test_the_exit_of_a_chief_by_0_is_a_success(
    start_cluster: StartCluster, tmp_path: Path, runtime: str, session: str, code: int | None
) -> None:
    """It saves a last checkpoint, and a worker that trains does so to its own end."""
    settings = {"sessions": [session], "steps": 1000, "logdir": str(tmp_path)}
    with start_cluster(PROGRAM, runtime, ps=1, worker=2) as cluster:
        ps = cluster.start("ps")
        worker = cluster.start("worker", 1, **{**settings, "steps": 150, "pause": 0.1})
        if runtime == "legacy":
            waits = {"pause": 0.1, "exits_after": 10, "exits_with": code}
        else:
            waits = {"exits_after": 3, "exits_with": code}
        chief = cluster.start("worker", 0, **settings, **waits)
        assert chief.wait().code == 0
        assert worker.report == [[]] if runtime == "modern" else len(worker.report[0]) == 150
        assert ps.report == "succeeded"
    saved = {int(path.stem.partition("-")[2]) for path in tmp_path.glob("model.ckpt-*.index")}
    assert max(saved) >= 3
    assert "left a session" not in chief.said


@pytest.mark.cluster
@pytest.mark.once
@pytest.mark.long
@pytest.mark.endings
def test_the_exit_of_a_chief_by_another_code_is_a_failure(
    start_cluster: StartCluster, tmp_path: Path, runtime: str
) -> None:
    leaves = {"exits_after": 3, "exits_with": 3}
    with start_cluster(PROGRAM, runtime, ps=1, worker=1) as cluster:
        ps = cluster.start("ps")
        chief = cluster.start(
            "worker", sessions=["supervised"], steps=10, logdir=str(tmp_path), **leaves
        )
        assert chief.wait().code == 3
        assert ps.report == "succeeded"
    assert [path.stem for path in tmp_path.glob("*.index")] == ["model.ckpt-0"]


@pytest.mark.cluster
@pytest.mark.once
@pytest.mark.long
def test_a_cluster_may_be_in_one_process(
    run_program: RunProgram, tmp_path: Path, runtime: str
) -> None:
    """Its servers are made in the order of `tf.test.create_local_cluster`, the workers' first."""
    program = PROGRAM.with_name("one_process.py")
    seen = run_program(program, runtime=runtime, steps=3, logdir=str(tmp_path))
    assert [len(losses) for losses in seen["losses"]] == [3, 3]
    losses = [loss for session in seen["losses"] for loss in session]
    assert losses == sorted(losses, reverse=True)
    if runtime == "legacy":  # A session belongs to the task whose server it connects to.
        value, device = seen["second"]
        assert value == pytest.approx(2 * (1 - 0.5**6))
        assert device == "/job:worker/task:1"
        assert seen["states"] == ["succeeded"] * 3
    else:  # The second one serves the first.
        assert seen["states"] == ["succeeded", "waiting", "succeeded"]


ENDS = """
import multiprocessing, os, sys
from compat.cluster.liveness import run_state

def end(error):
    os.write(1, (type(error).__name__ + " ").encode())

def work(act):
    run_state.at_exit(end)
    {"return": len, "exit": sys.exit, "raise": int}[act]("no")

if __name__ == "__main__":
    how, act = sys.argv[1:]
    if how == "child":
        child = multiprocessing.get_context("fork").Process(target=work, args=(act,))
        child.start()
        child.join()
        sys.exit(child.exitcode)
    run_state.at_exit(end)
    if how == "parent":  # Which does not end for its child.
        child = multiprocessing.get_context("fork").Process(target=len, args=("",))
        child.start()
        child.join()
    {"return": len, "exit": sys.exit, "raise": int}[act]("no")
"""


@pytest.mark.once
@pytest.mark.parametrize(
    ("how", "act", "code", "told"),
    [
        ("main", "return", 0, {"NoneType"}),
        ("main", "exit", 1, {"NoneType"}),
        ("main", "raise", 1, {"ValueError"}),
        ("parent", "return", 0, {"NoneType"}),
        ("child", "return", 0, {"NoneType"}),
        # What else ends a child is shown by older releases of Python alone.
        ("child", "exit", 1, {"SystemExit", "NoneType"}),
        ("child", "raise", 1, {"ValueError", "NoneType"}),
    ],
)
def test_the_end_of_a_process_is_told_with_its_error(
    tmp_path: Path, how: str, act: str, code: int, told: set[str]
) -> None:
    (tmp_path / "program.py").write_text(ENDS, encoding="utf-8")
    done = python(str(tmp_path / "program.py"), how, act)
    assert done.returncode == code, done.stderr
    assert done.stdout and set(done.stdout.split()) <= told


@pytest.mark.once
def test_an_error_in_a_notebook_s_cell_is_not_its_end() -> None:
    source = "from compat.cluster.liveness import run_state\nrun_state.at_exit(print)\nint('no')\n"
    done = python("-i", "-", given=source)
    assert "ValueError" in done.stderr
    assert set(done.stdout.split()) == {"None"}


def python(*args: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args],
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": PACKAGES},
    )


STATES = [  # What happens, the state after it, and what is announced then.
    (["end SystemExit(0)"], "succeeded", "succeeded"),
    (["end SystemExit(None)"], "succeeded", "succeeded"),
    (["end SystemExit('no')"], "failed", "failed"),
    (["end SystemExit(2)"], "failed", "failed"),
    (["end SystemExit(-1)"], "retrying", None),
    (["end ValueError()"], "failed", "failed"),
    (["end PeerError('lost')"], "retrying", None),
    (["end Stopped(15)"], "retrying", None),
    (["end Stopped(2)"], "failed", "failed"),
    (["begin"], "running", "succeeded"),
    (["begin", "end PeerError('lost')", "begin"], "running", "succeeded"),
    (["begin", "end ValueError()", "begin"], "running", "succeeded"),
    (["begin", "end ValueError()", "end SystemExit(0)"], "succeeded", "succeeded"),
    ([], "waiting", "succeeded"),
]


@pytest.mark.once
@pytest.mark.parametrize(("happens", "state", "announced"), STATES)
def test_a_state_follows_from_what_happens(
    happens: list[str], state: str, announced: str | None
) -> None:
    lifecycle = run_state.Lifecycle(lambda error: None)
    assert lifecycle.state.value == "waiting"
    for event in happens:
        if event == "begin":
            lifecycle.begin()
        else:
            lifecycle.end(eval(event.partition(" ")[2], vars(errors)))
    assert lifecycle.state.value == state
    told = lifecycle.announce()
    assert (told and told.value) == announced
    assert lifecycle.announce() is None
    if announced:
        lifecycle.begin()
        assert lifecycle.state.value == announced  # What has been announced stays.


def test_a_lost_peer_is_looked_for_once() -> None:
    looked_for: list[BaseException] = []

    def lost_peer(error: BaseException) -> errors.PeerError:
        looked_for.append(error)
        return errors.PeerError("lost")

    lifecycle, error = run_state.Lifecycle(lost_peer), OSError()
    assert lifecycle.end(error) is lifecycle.end(error)
    assert looked_for == [error]
    assert lifecycle.state is run_state.RunState.RETRYING
