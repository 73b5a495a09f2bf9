"""Monitored sessions in one process, at a loss, and summaries of a step; see also `conformance`."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import RunProgram, StartCluster


def test_summaries_inside_a_step_are_written_when_due(supervised: Any) -> None:
    """In place of its values; unless the program asks for these."""
    each, first, values = supervised["summaries_inside_a_step"]
    assert each == [[1, "seen", 1], [2, "seen", 1 / 4], [3, "seen", 1 / 16]]
    assert first == each[:1]
    assert values == ["cost"]


def test_a_hook_writes_the_summary_of_one_step(supervised: Any) -> None:
    assert supervised["monitored_summary_of_one_step"] == [[1, "seen", 1], [2, "seen", 1 / 4]]


def test_names_of_two_steps_are_those_of_one_graph(supervised: Any) -> None:
    """So a second layer without a name has weights of its own, and summaries."""
    saved, tags = supervised["monitored_two_steps"]
    weights = ["dense/kernel", "dense_1/kernel", "global_step", "layer/bias", "layer_1/bias"]
    assert saved == weights
    assert tags == ["layer/bias_1", "loss", "layer_1/bias_1", "loss_1"]


def test_a_session_resumes_in_the_same_and_in_another_process(supervised: Any) -> None:
    steps, last = supervised["monitored_resumes"]
    assert steps == [1, 2, 3, 4, 5]
    assert last == "model.ckpt-5"


def test_the_end_of_the_data_is_a_clean_end(supervised: Any) -> None:
    weight, by_name, checkpoints, steps = supervised["monitored_end_of_the_data"]
    assert [weight] == by_name == [0.875]
    assert checkpoints == ["model.ckpt-0", "model.ckpt-3"]
    assert steps == [1, 3]  # Of the summaries of the elements.


def test_a_saving_hook_reads_the_step_only_when_it_may_save(supervised: Any, runtime: str) -> None:
    """Twice a checkpoint at most: a call may fetch the step before its update or after it."""
    uses, saved = supervised["monitored_saves_by_steps"]
    assert saved == ["model.ckpt-0", "model.ckpt-12", "model.ckpt-6"]
    assert uses <= 6 or runtime == "modern"  # Where a read is not a message.


def test_an_error_is_raised_and_nothing_more_is_saved(supervised: Any) -> None:
    said, final, checkpoints, nan = supervised["monitored_error"]
    assert (said, final, checkpoints) == ("'mine'", None, ["model.ckpt-0"])
    assert nan == "NaN loss during training."


def test_a_value_that_a_step_does_not_have_is_refused(supervised: Any) -> None:
    assert supervised["monitored_refusals"]["value"] == (
        "a step has no value 'costs'; return it from the step's function, beside cost, global_step"
    )


def test_what_calls_of_steps_cannot_do(supervised: Any, runtime: str) -> None:
    if runtime == "modern":
        found = supervised["monitored_refusals"]
        assert (
            "RunOptions, such as the trace that ProfilerHook asks for, are for " in found["options"]
        )
        assert found["two steps"] == "run() was given values of two steps; run one after the other"


def test_a_program_makes_sessions_itself(supervised: Any) -> None:
    assert supervised["monitored_refusals"]["creator"] == 1.0


@pytest.mark.cluster
@pytest.mark.endings
def test_a_lost_parameter_server_is_recovered_or_reported(
    start_cluster: StartCluster, programs: Path, tmp_path: Path, runtime: str
) -> None:
    settings = {"steps": 120, "pause": 0.05, "logdir": str(tmp_path)}
    with start_cluster(programs / "monitored_task.py", runtime, ps=1, worker=1) as cluster:
        server, worker = cluster.start("ps"), cluster.start("worker", **settings)
        worker.wait_until_it_says("step 15")
        server.send(signal.SIGKILL)
        server.wait()
        if runtime == "modern":
            assert worker.wait().code == 138
            assert "error: lost /job:ps/task:0" in worker.complaints
            assert (tmp_path / "model.ckpt-10.index").exists()
            return
        server = cluster.restart("ps")
        assert worker.wait().code == 0, worker.complaints
        assert server.wait().code == 0
    lines = worker.said.splitlines()
    first, second = [line for line in lines if line.startswith("session at")]
    assert first == "session at 0"
    assert re.fullmatch(r"session at ([1-9]|1[01])0", second)
    assert "end at 120" in lines


@pytest.mark.cluster
@pytest.mark.long
def test_a_replica_that_has_left_is_not_waited_for(
    start_cluster: StartCluster, programs: Path
) -> None:
    with start_cluster(programs / "monitored_task.py", "legacy", ps=1, worker=2) as cluster:
        cluster.start("ps")
        chief = cluster.start("worker", 0, steps=40, sync=True)
        other = cluster.start("worker", 1, steps=5, sync=True)
        codes = [task.wait().code for task in (chief, other)]
    assert codes == [0, 0], chief.complaints + other.complaints
    assert "end at 4" in chief.said
    assert "waiting for" not in chief.said


@pytest.mark.once
def test_the_page_s_program_prints_what_the_page_shows(
    run_source: RunProgram, runtimes: list[str], tmp_path: Path
) -> None:
    """On the legacy runtime of TensorFlow 1.15, and on the modern one of the newest."""
    page = Path(__file__).parents[2] / "docs" / "hooks.md"
    program, output = re.findall(
        r"```(?:python|text)\n(.*?)```", page.read_text("utf-8"), re.DOTALL
    )
    assert run_source(program, runtimes[-1], folder=tmp_path) == output
    assert len(list((tmp_path / "logs").glob("events.*"))) == 1
    names = sorted(path.stem for path in (tmp_path / "logs").glob("*.index"))
    assert names == ["model.ckpt-0", "model.ckpt-100", "model.ckpt-50"]
