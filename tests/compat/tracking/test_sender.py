"""The process that sends to MLflow, by itself and while it makes a SQLite store."""

from __future__ import annotations

import contextlib
import os
import pathlib
import pty
import shlex
import sqlite3
import subprocess
import sys
import time

import pytest

from compat.tracking import files
from compat.tracking.mlflow import spool
from tests.compat.tracking.conftest import history, run, tracker

pytestmark = pytest.mark.once


def test_the_sender_says_what_it_expects(tmp_path):
    root = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-m", "compat.tracking.mlflow.sender", str(tmp_path)],
        env=dict(os.environ, PYTHONPATH=root), stderr=subprocess.PIPE, timeout=150,
    )  # fmt: skip
    assert done.returncode == 1
    (line,) = done.stderr.decode().splitlines()
    assert "holds no tracking.jsonl; expected that of a run with MLflow" in line


def test_the_sender_loads_no_pandas(stored):
    """MLflow would, in a sixth of the time that it takes to load, on cores that trainings need."""
    with contextlib.closing(spool.Spool(stored)) as kept:
        kept.append("start", id="1", experiment="mnist", run=None, time=spool.now_ms())
    root = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "compat.tracking.mlflow.sender", stored],
        env=dict(os.environ, PYTHONPATH=root), stderr=subprocess.PIPE, timeout=150, check=True,
    )  # fmt: skip
    loaded = [line.split("|")[-1].strip() for line in done.stderr.decode().splitlines()]
    assert "mlflow" in loaded
    assert "pandas.core.api" not in loaded
    assert run(stored).info.status == "FAILED"


def test_what_a_killed_process_was_writing_is_removed_by_the_next_sender(stored):
    with contextlib.closing(spool.Spool(stored)) as kept:
        kept.append("start", id="1", experiment="mnist", run=None, time=spool.now_ms())
    source = (
        "import sys, time\n"
        "from compat.tracking.files import replacing\n"
        "with replacing(sys.argv[1] + '/learning_curve.png') as file:\n"
        "    print('begun', flush=True)\n"
        "    time.sleep(600)\n"
    )
    root = os.pathsep.join(filter(None, sys.path))
    environment = dict(os.environ, PYTHONPATH=root)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", source, stored], env=environment, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    try:
        assert [writer.stdout.readline() for writer in writers] == [b"begun\n"] * 2
        writers[0].kill()
        writers[0].wait()
        assert len(list(pathlib.Path(stored).glob(".unfinished-*"))) == 2
        send = [sys.executable, "-m", "compat.tracking.mlflow.sender", stored]
        subprocess.run(send, env=environment, timeout=150, check=True)
        assert len(list(pathlib.Path(stored).glob(".unfinished-*"))) == 1, "that of the living one"
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()


def test_a_store_that_is_being_made_when_the_patience_ends_leaves_nothing(logdir, said, wait_for):
    writer = tracker(logdir, said, patience=0.01)
    wait_for(
        lambda: [name for name in os.listdir(os.path.dirname(logdir)) if ".new-" in name],
        "half a store",
    )
    writer.close()
    assert not [
        name for name in os.listdir(os.path.dirname(logdir)) if name.startswith("mlflow.db")
    ]
    assert "records were not delivered" in said[-1]


@pytest.mark.long
def test_a_store_that_could_not_be_made_whole_is_made_later(logdir, python, wait_for):
    source = (
        "import resource, sys\n"
        "from compat.tracking import Tracker\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "writer = Tracker(sys.argv[1], tracking_uri=None, experiment_name='e', run_name=None,\n"
        "                 patience=1.0)\n"
        "writer.scalars(1, {'cost': 1.0})\n"
        "print('written', flush=True)\n"
        "sys.stdin.readline()\n"
        "writer.close()\n"
    )
    trainer = python(source, logdir)
    assert trainer.stdout.readline() == b"written\n"
    log = pathlib.Path(logdir, "tracking.log")
    wait_for(lambda: log.exists() and "not delivered" in log.read_text(), "full disk", 180)
    out, _ = trainer.communicate(b"\n", timeout=150)
    assert b"records were not delivered" in out
    # The sender goes on by itself, and may be at another attempt.
    wait_for(
        lambda: (
            not [
                name for name in os.listdir(os.path.dirname(logdir)) if name.startswith("mlflow.db")
            ]
        ),
        "nothing that is half a store",
    )
    root = os.pathsep.join(filter(None, sys.path))
    send = [sys.executable, "-m", "compat.tracking.mlflow.sender", logdir]
    subprocess.run(send, env=dict(os.environ, PYTHONPATH=root), timeout=150, check=True)
    assert history(logdir, "cost") == [(1, 1.0)]
    assert run(logdir).info.status == "FINISHED"


def test_the_command_that_sends_the_rest_takes_the_password_from_the_environment(
    logdir, said, monkeypatch, closed_port
):
    """It works as printed: a password never is in its words."""
    uri = f"http://me:hush@127.0.0.1:{closed_port}"
    for number, given in enumerate([uri, None]):
        writer = tracker(f"{logdir}{number}", said, tracking_uri=given, patience=0.1)
        writer.close()
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    first, second = (line.partition("; to send them: ")[2] for line in said)
    command = "python -m compat.tracking.mlflow.sender"
    assert first == (
        f"{command} {logdir}0, with the tracking URI and its password in MLFLOW_TRACKING_URI"
    )
    assert second == f"{command} {logdir}1, with MLFLOW_TRACKING_URI as it is now"


def test_the_state_is_what_is_delivered_and_who_sends_the_rest(stored):
    with contextlib.closing(spool.Spool(stored)) as kept:
        kept.append("start", id="1", experiment="mnist", run=None, time=spool.now_ms())
        kept.append("tags", values={"a": "b"})
    root = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-m", "compat.tracking.mlflow.sender", stored]

    def state():
        done = subprocess.run(
            [*command, "--state"], env=dict(os.environ, PYTHONPATH=root), timeout=150,
            stdout=subprocess.PIPE, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout.decode()

    assert state() == (1, "0 of 2 records are delivered; no process sends now\n")
    with files.lock(os.path.join(stored, spool.SENDING), ""):
        log = os.path.join(stored, "tracking.log")
        said = (
            f"0 of 2 records are delivered; a process sends the rest; {log} shows what it waits for"
        )
        assert state() == (1, said + "\n")
    subprocess.run(command, env=dict(os.environ, PYTHONPATH=root), timeout=150, check=True)
    assert state() == (0, "2 of 2 records are delivered; no process sends now\n")


def test_a_terminal_gets_its_prompt_back_after_3_s_and_the_rest_is_sent(stored, wait_for):
    """The database is kept busy for 10 s, so that the sender cannot be done before."""
    source = (
        "import sys\n"
        "from compat.tracking import Tracker\n"
        "writer = Tracker(sys.argv[1], tracking_uri=None, experiment_name='e', run_name=None)\n"
        "writer.scalars(1, {'cost': 1.0})\n"
        "print('pid', writer._sender.pid, flush=True)\n"
        "sys.stdin.readline()\n"
        "writer.close()\n"
    )
    database = os.path.join(os.path.dirname(stored), "mlflow.db")
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as busy:
        busy.execute("begin exclusive")
        terminal, other = pty.openpty()
        root = os.pathsep.join(filter(None, sys.path))
        trainer = subprocess.Popen(
            [sys.executable, "-c", source, stored], env=dict(os.environ, PYTHONPATH=root),
            stdin=subprocess.PIPE, stdout=other, cwd=os.path.dirname(stored),
        )  # fmt: skip
        os.close(other)
        try:
            begun = b""
            while b"\n" not in begun:  # A terminal gives what is there.
                begun += os.read(terminal, 100)
            sender = int(begun.split()[1])
            wait_for(lambda: nice_of(sender) == 10, "low priority", 60)
            began = time.monotonic()
            trainer.communicate(b"\n", timeout=60)
            assert time.monotonic() - began < 30  # 3 s, and Python's exit on a busy machine.
            said = os.read(terminal, 10_000).decode().splitlines()
            assert said[0] == "MLflow: the rest is being sent, 3 records"
            assert said[1].startswith(
                f"MLflow: process {sender} sends the rest by itself, for 180 s"
            )
            command = said[1].partition("to see its state: python ")[2].partition(";")[0]
            state = [sys.executable, *shlex.split(command)]
            found = subprocess.run(
                state, env=dict(os.environ, PYTHONPATH=root), stdout=subprocess.PIPE, timeout=60,
                check=False,
            )  # fmt: skip
            assert found.stdout.startswith(b"0 of 3 records are delivered; a process sends"), found
            assert nice_of(sender) == (0 if os.geteuid() == 0 else 10)
        finally:
            trainer.kill()
            os.close(terminal)
        busy.rollback()
    wait_for(lambda: spool.pending(stored) == 0, "what was left", 150)
    wait_for(lambda: run(stored).info.status == "FINISHED", "end", 60)


def nice_of(pid):
    """Returns the highest niceness of a thread of a process."""
    return max(os.getpriority(os.PRIO_PROCESS, int(t)) for t in os.listdir(f"/proc/{pid}/task"))
