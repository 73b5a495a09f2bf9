"""The tracker and its sender on real SQLite stores, which are read back."""

from __future__ import annotations

import contextlib
import getpass
import os
import pathlib
import re
import signal
import sqlite3
import sys
import time

import pytest

from compat.errors import UserError
from compat.tracking.mlflow import spool
from compat.tracking.mlflow.learning_curve import FILE as CURVE
from tests.compat.tracking.conftest import client, history, run, run_id, store, tracker

pytestmark = pytest.mark.once


SENDER = "compat.tracking.mlflow.sender"


def rows(logdir, query):
    connection = sqlite3.connect(store(logdir))
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def besides_waiting(said):
    """Returns what was said, without that it takes long, as on a machine with much else to do."""
    return [line for line in said if "is being sent" not in line]


@pytest.mark.long
@pytest.mark.parametrize("has_all_tables", [True, False])
def test_a_database_of_another_release_is_not_waited_for(logdir, said, tmp_path, has_all_tables):
    with contextlib.closing(tracker(logdir, said)) as writer:
        writer.scalars(1, {"cost": 1.0})
    connection = sqlite3.connect(store(logdir))
    connection.execute("update alembic_version set version_num = 'another'")
    if not has_all_tables:
        connection.execute("drop table latest_metrics")
    connection.commit()
    connection.close()
    other = str(tmp_path / "other")
    writer = tracker(other, said, tracking_uri=f"sqlite:///{store(logdir)}")
    writer.scalars(1, {"cost": 1.0})
    began = time.monotonic()
    writer.close()
    assert time.monotonic() - began < 90.0  # The patience with a database is 180 s.
    path = os.path.join(other, spool.SPOOL)
    log = pathlib.Path(other, "tracking.log")
    expected = f"MLflow: 3 records were not delivered and wait in {path}; {log} says why; "
    assert said[-1].startswith(expected), said
    assert log.read_text().count("another release of MLflow has written the database") == 1


def test_a_whole_training_is_one_run(logdir, said, monkeypatch):
    work = pathlib.Path(logdir, "work")
    work.mkdir(parents=True)
    checkpoint = work / "model.ckpt-3.index"
    checkpoint.write_text("weights")
    (work / "export").mkdir()
    (work / "export" / "model.bin").write_text("bytes")
    began = int(time.time() * 1000)
    writer = tracker(logdir, said)
    monkeypatch.chdir(work)  # The store stays where the run began.
    writer.params({"batch_size": 100, "sync": True, "password": "hush", "long": "x" * 9000})
    writer.tags({"data": "http://me:hush@host/mnist"})
    for step in range(1, 601):
        writer.scalars(step, {"train/cost": 1 / step, "train/accuracy": 0.5})
    writer.scalars(601, {"bad": float("nan"), "up": float("inf"), "down": -float("inf")})
    writer.scalars(602, {"odd:name(µ)//x/../y": 1.0, "validation/accuracy": 0.75})
    writer.scalars(603, {"a>b": 1.0, "a\\b": 2.0, "a_b": 3.0})
    writer.artifact("model.ckpt-3.index", folder="checkpoint")
    writer.artifact(str(work / "export"), folder="model")
    writer.artifact("gone")
    with pytest.raises(UserError, match="is being tracked by another training"):
        tracker(logdir, said)
    writer.close()
    ended = int(time.time() * 1000)
    writer.close()
    *renamed, line = besides_waiting(said)
    assert renamed == [
        r"MLflow: 'a\\b' is 'a_b_2' there, where 'a>b' has its name",
        "MLflow: 'a_b' is 'a_b_3' there, where 'a>b' has its name",
    ]
    assert "part of the run was refused" in line and "tracking.log has the details" in line
    assert f"artifact '{work}/gone' is given up" in pathlib.Path(logdir, "tracking.log").read_text()
    assert sorted(os.listdir(work)) == ["export", "model.ckpt-3.index"]

    found = run(logdir)
    assert found.info.status == "FINISHED"
    assert began <= found.info.end_time <= ended
    assert found.data.tags["mlflow.runName"] == "first"
    # What `mlflow.start_run` would have said about the origin of the run.
    assert found.info.user_id == found.data.tags["mlflow.user"] == getpass.getuser()
    main = getattr(sys.modules["__main__"], "__file__", None) or sys.argv[0]
    program = os.path.join(os.path.dirname(logdir), main)  # Where it began.
    assert found.data.tags["mlflow.source.name"] == program
    assert found.data.tags["mlflow.source.type"] == "LOCAL"
    assert found.data.tags["data"] == "http://***@host/mnist"
    long = found.data.params.pop("long")
    # Of 6,000 characters in MLflow 3, and of 500 in older ones.
    assert long in ("x" * (length - 3) + "..." for length in (6000, 500))
    assert "'long' is cut to" in pathlib.Path(logdir, "tracking.log").read_text()
    assert found.data.params == {"batch_size": "100", "sync": "True", "password": "***"}
    assert history(logdir, "train/cost") == [(s, pytest.approx(1 / s)) for s in range(1, 601)]
    assert history(logdir, "odd_name_µ_/x/y") == [(602, 1.0)]
    assert [history(logdir, f"a_b{end}") for end in ("", "_2", "_3")] == [
        [(603, 1.0)], [(603, 2.0)], [(603, 3.0)]]  # fmt: skip
    counts = rows(logdir, "select key, count(*), min(timestamp), max(timestamp) from metrics"
                          " group by key")  # fmt: skip
    assert {key: count for key, count, _, _ in counts} == {
        "train/cost": 600, "train/accuracy": 600, "bad": 1, "up": 1, "down": 1,
        "odd_name_µ_/x/y": 1, "validation/accuracy": 1,
        "a_b": 1, "a_b_2": 1, "a_b_3": 1}  # fmt: skip
    assert all(began <= low <= high <= ended for _, _, low, high in counts)
    assert dict(rows(logdir, "select key, is_nan from metrics where key = 'bad'"))["bad"] == 1
    assert rows(logdir, "select count(*) from runs") == [(1,)]
    assert rows(logdir, "select name from experiments where experiment_id != 0") == [("mnist",)]

    artifacts = pathlib.Path(logdir, "..", "mlflow-artifacts", run_id(logdir), "artifacts")
    assert (artifacts / "checkpoint" / "model.ckpt-3.index").read_text() == "weights"
    assert (artifacts / "model" / "model.bin").read_text() == "bytes"
    assert (artifacts / CURVE).read_bytes() == pathlib.Path(logdir, CURVE).read_bytes()
    for name in ("tracking.jsonl", "tracking.log", "../mlflow.db"):
        assert b"hush" not in pathlib.Path(logdir, name).read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("status", ["KILLED", pytest.param("FAILED", marks=pytest.mark.slow)])
def test_an_unfinished_training_leaves_what_takes_long_to_the_sender(
    stored, said, wait_for, status
):
    writer = tracker(stored, said)
    wait_for(lambda: os.path.exists(os.path.join(stored, "mlflow_run_id")), "run")
    database = store(stored)
    with contextlib.closing(sqlite3.connect(database, timeout=60)) as connection:
        connection.execute("begin exclusive")
        began = time.monotonic()
        writer.close(status)
        assert 8 <= time.monotonic() - began < 60  # Not the 180 s of a run that is complete.
        connection.rollback()
    waiting, line = said
    assert re.fullmatch(r"MLflow: the rest is being sent, \d+ records", waiting)
    assert re.fullmatch(
        rf"MLflow: process \d+ sends the rest by itself, for 180 s at the most; to see its state: "
        rf"python -m {SENDER} {stored} --state; to send what is left then: python -m {SENDER} "
        rf"{stored} --tracking_uri=sqlite:///{database}",
        line,
    )
    wait_for(lambda: run(stored).info.status == status, "end of the run")
    wait_for(lambda: spool.pending(stored) == 0, "end of the delivery")


@pytest.mark.long
def test_a_resumed_training_goes_on_with_its_run_as_long_as_there_is_one(stored, said):
    writer = tracker(stored, said)
    writer.params({"steps": 10, "rate": 0.1})
    writer.scalars(1, {"cost": 1.0})
    writer.close()
    first = run(stored)
    assert first.info.status == "FINISHED"
    # As if killed before it was written, and then written to by another hand.
    pathlib.Path(stored, "mlflow_run_id").write_bytes(b"\xff../\n")

    writer = tracker(stored, said, run_name="second")
    writer.params({"steps": 20, "rate": 0.1, "new": "yes"})
    deadline = time.monotonic() + 150
    while client(stored).get_run(first.info.run_id).info.status != "RUNNING":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    writer.scalars(2, {"cost": 0.5})
    writer.close()

    second = run(stored)
    assert second.info.run_id == first.info.run_id
    assert second.info.status == "FINISHED"
    assert second.data.params == {"steps": "10", "rate": "0.1", "new": "yes"}
    assert {k: v for k, v in second.data.tags.items() if k.startswith("resumed.")} == {
        "resumed.steps": "20"}  # fmt: skip
    assert history(stored, "cost") == [(1, 1.0), (2, 0.5)]
    assert rows(stored, "select count(*) from runs") == [(1,)]

    client(stored).delete_run(first.info.run_id)
    writer = tracker(stored, said, resume_step=2)
    writer.scalars(3, {"cost": 0.25})
    writer.close()
    assert run_id(stored) != first.info.run_id
    assert history(stored, "cost") == [(1, 1.0), (2, 0.5), (3, 0.25)]
    assert "superseded" not in run(stored).data.tags
    assert besides_waiting(said) == []


@pytest.mark.long
@pytest.mark.parametrize(("checkpoint", "steps"), [(2, "3 to 4"), (-1, "1 to 4")])
def test_points_that_a_resumed_run_logs_again_are_named(stored, said, checkpoint, steps):
    writer = tracker(stored, said)
    for step in range(1, 5):
        writer.scalars(step, {"cost": 1.0})
    writer.close("FAILED")
    writer = tracker(stored, said, resume_step=checkpoint)
    writer.scalars(4, {"cost": 0.5})
    writer.close()
    (line,) = [line for line in said if "the points of steps" in line]
    assert line.startswith(f"MLflow: the points of steps {steps} stay in the run beside those")
    resumed = f"steps {steps}, by a resume from step {max(checkpoint, 0)}"
    assert run(stored).data.tags["superseded"] == resumed
    writer = tracker(stored, said, resume_step=3)
    writer.close()
    twice = f"{resumed}; steps 4 to 4, by a resume from step 3"
    assert run(stored).data.tags["superseded"] == twice
    assert history(stored, "cost") == [(1, 1.0), (2, 1.0), (3, 1.0), (4, 0.5), (4, 1.0)]


@pytest.mark.long
def test_a_killed_trainer_has_failed(stored, python, wait_for):
    source = (
        "import sys, time\n"
        "from compat.tracking import Tracker\n"
        "writer = Tracker(sys.argv[1], tracking_uri=None, experiment_name='e', run_name=None)\n"
        "writer.scalars(1, {'cost': 1.0})\n"
        "print('written', writer._sender.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    trainer = python(source, stored)
    sender = int(trainer.stdout.readline().split()[1])
    wait_for(lambda: os.path.exists(os.path.join(stored, "mlflow_run_id")), "run")
    wait_for(lambda: run(stored).data.metrics == {"cost": 1.0}, "metric")
    assert run(stored).info.status == "RUNNING"
    os.kill(sender, signal.SIGINT)  # as Ctrl-C would
    trainer.kill()
    trainer.wait(60)
    wait_for(lambda: run(stored).info.status == "FAILED", "honest status")
    wait_for(lambda: not os.path.exists(f"/proc/{sender}/cmdline") or ended(sender), "end")
    assert os.path.exists(os.path.join(stored, CURVE))


def ended(pid: int) -> bool:
    """Whether a process has ended, be it that nobody has asked for its exit status yet."""
    return not pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.parametrize("uri", ["file:/tmp/x", "mlruns"])
def test_stores_of_files_are_refused_before_anything_is_made(logdir, said, uri):
    with pytest.raises(UserError, match="is not a store that MLflow can write"):
        tracker(logdir, said, tracking_uri=uri)
    assert not os.path.exists(logdir)


def test_a_removed_folder_is_told_once(logdir, said):
    import shutil

    writer = tracker(logdir, said, patience=1.0)
    shutil.rmtree(logdir)
    writer.scalars(1, {"cost": 1.0})
    writer.close()
    (line,) = said
    assert "was removed, and with it what was not sent yet" in line


@pytest.mark.long
def test_a_full_disk_is_told_once(stored, python):
    source = (
        "import resource, sys\n"
        "from compat.tracking import Tracker\n"
        "writer = Tracker(sys.argv[1], tracking_uri=None, experiment_name='e', run_name=None)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "for step in range(1, 300): writer.scalars(step, {'cost': 1.0})\n"
        "writer.close()\n"
    )
    out, _ = python(source, stored).communicate(timeout=150)
    assert out.decode().count("no more is recorded in") == 1, out
    written = [s for s, _ in history(stored, "cost")]
    assert written == list(range(1, len(written) + 1)) and len(written) > 10
    # Its end could not be recorded, but it is known that it is over.
    assert run(stored).info.status == "FAILED"
    assert spool.pending(stored) == 0
