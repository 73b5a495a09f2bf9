"""A log folder is one run's at a time; a run resumes where its folder says, or says why not."""

from __future__ import annotations

import os
import re
import signal
from typing import TYPE_CHECKING, Any

import pytest

from compat.errors import UserError
from experiments.launching import task_record
from experiments.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.once, pytest.mark.long]
ENDLESS = "--max_steps=1000000"


def refused(logdir: Path) -> str:
    return (
        rf"log folder {re.escape(str(logdir))} is in use by process \d+ on \S+, since "
        r"\d+-\d+-\d+ \d+:\d+:\d+ [-+]\d+; wait until that run has ended, end it, or choose "
        r"another log folder\n"
    )


def curves(logdir: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in logdir.glob("*tfevents*")}


def test_a_second_start_leaves_the_first_alone(
    train: Any, record: Any, runtime: str, tmp_path: Path
) -> None:
    logdir = tmp_path / "log"
    flags = ["--checkpoint_every=1", f"--runtime={runtime}"]
    first = train(ENDLESS, *flags, logdir=logdir).wait_until_it_says(r"^Step: ")
    for more in ([], ["--strategy=ps", "--num_workers=1"]):
        second = train(ENDLESS, *flags, *more, logdir=logdir).wait()
        assert second.code == 2, second.err
        assert re.search(refused(logdir), second.err + second.out), second.err
        assert second.left_running() == []
    said = first.out.rpartition("Step: ")[2].splitlines()[0]
    first.wait_until_it_says(rf"^Step: {re.escape(said)}\n(.*\n)*?Step: ").send(signal.SIGTERM)
    assert first.wait().code == 143, first.err
    assert record(logdir).checkpoints
    # The process that sends the record lives on, and may be drawing its curve.
    names = [path.name for path in logdir.iterdir() if not path.name.endswith(".png")]
    assert not [name for name in names if name.startswith((".unfinished", "chief.lock"))]


@pytest.mark.cluster
def test_a_second_start_leaves_a_cluster_alone_whose_chief_is_lost(
    train: Any, runtime: str, tmp_path: Path
) -> None:
    """The launcher holds the folder between two lives of its chief."""
    logdir = tmp_path / "log"
    flags = ["--checkpoint_every=1", f"--runtime={runtime}"]
    cluster = ["--strategy=ps", "--num_workers=1"]
    first = train(ENDLESS, *flags, *cluster, logdir=logdir)
    first.wait_until_it_says(r"^\[worker 0\] Step: ")
    (chief,) = first.offspring("--job_name=worker", "--task_index=0")
    os.kill(chief, signal.SIGSTOP)
    os.kill(chief, signal.SIGKILL)
    second = train(ENDLESS, *flags, *cluster, logdir=logdir).wait()
    assert (second.code, second.out) == (2, ""), second.err
    assert re.fullmatch("error: " + refused(logdir), second.err), second.err
    assert f"process {first.pid} on" in second.err
    alone = train(ENDLESS, *flags, logdir=logdir).wait()
    assert (alone.code, alone.out) == (2, ""), alone.err
    first.wait_until_it_says(r"^\[worker 0\] resuming from step (.*\n)*\[worker 0\] Step: ")
    assert first.send(signal.SIGTERM).wait().code == 143
    assert list(logdir.glob("model.ckpt-*.index"))
    begun = [event["task"] for event in task_record.read(str(logdir)) if event["event"] == "start"]
    assert begun.count("ps 0") == 1  # None of the second cluster.
    assert not (logdir / "chief.lock").exists()


@pytest.mark.slow
def test_checkpoints_that_nothing_names_keep_their_curves(
    train: Any, record: Any, runtime: str, tmp_path: Path
) -> None:
    logdir = tmp_path / "lr=[1]"
    flags = ["--checkpoint_every=10", "--summary_every=5", f"--runtime={runtime}"]
    assert train("--max_steps=20", *flags, logdir=logdir).wait().code == 0
    before, state = curves(logdir), logdir / "checkpoint"
    state.unlink()
    again = train("--max_steps=40", *flags, logdir=logdir).wait()
    assert again.code == 2
    assert again.err == (
        f"error: log folder {logdir} holds checkpoints up to model.ckpt-20, and its file "
        '`checkpoint` names none of them; write the line model_checkpoint_path: "model.ckpt-20" to '
        "that file to resume, or remove the checkpoints and that file, or choose another log "
        "folder to start anew\n"
    )
    assert curves(logdir) == before
    state.write_text('model_checkpoint_path: "model.ckpt-10"\n')
    resumed = train("--max_steps=40", *flags, logdir=logdir).wait()
    assert resumed.code == 0, resumed.err
    assert f"resuming from step 10 in {logdir}" in resumed.out.splitlines()
    record(logdir).assert_one_training()
    assert record(logdir).checkpoints[-1] == 40


def test_a_url_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as refusal:
        Settings(logdir="gs://bucket/runs").resolved("mnist")
    assert str(refusal.value) == (
        "log folder gs://bucket/runs is a URL, and the record of a run is written to a folder of "
        "this machine; name one, or mount it"
    )
    assert not list(tmp_path.iterdir())
