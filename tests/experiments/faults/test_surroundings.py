"""What goes wrong around the chief, with its disk, its clock and its MLflow: docs/failures.md."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from compat.cluster import ports
from tests.experiments.conftest import PACKAGES
from tests.experiments.faults.conftest import (
    EVERY,
    FLAGS,
    Disk,
    Relay,
    last_step,
    mounted,
    served_by_mlflow,
    wait_for_step,
)

pytestmark = pytest.mark.faults

ENDLESS = "--max_steps=1000000"
AN_ANSWER_SECS = 10.0
LEFT = re.compile(r"^MLflow: \d+ records were not delivered .*; to send them: python (.*)$", re.M)


@pytest.fixture
def tell(
    request: pytest.FixtureRequest, runtime: str, record_property: Callable[[str, Any], None]
) -> Callable[[str], None]:
    """Is given what the training did, in words."""
    name = str(request.node.originalname)[len("test_") :].replace("_", " ")
    record_property("fault", [name, "", runtime])
    return lambda words: record_property("outcome", words)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of 4 MB."""
    with contextlib.ExitStack() as stack:
        try:
            disk = stack.enter_context(mounted(tmp_path / "disk", 4))
        except PermissionError as error:
            pytest.skip(str(error))
        yield disk


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real MLflow server, started when it is asked for; given a port, returns its folder."""
    with contextlib.ExitStack() as started:

        def start(port: int) -> Path:
            folder: Path = tmp_path_factory.mktemp("server")
            started.enter_context(served_by_mlflow(folder, port))
            return folder

        yield start


def send_the_rest(training: Any) -> None:
    """Runs the command that was printed in the end."""
    (command,) = LEFT.findall(training.out)
    subprocess.run(
        [sys.executable, *shlex.split(command)],
        cwd=str(training.folder),
        env=training.environment,
        check=True,
        timeout=480,
    )


def assert_all_is_in(recorded: Any, status: str, store: Path) -> None:
    """Asserts that MLflow has one run, and each point of TensorBoard's curves that it has."""
    ((_, found),) = recorded.select("select run_uuid, status from runs", store)
    assert found == status
    curves: dict[str, list[int]] = {}
    for tag, step in recorded.select("select key, step from metrics order by step", store):
        curves.setdefault(tag, []).append(step)
    kinds = ("train", "validation", "test", "learning_rate", "steps_per_sec")
    tags = [tag for tag in recorded.points if tag.split("/")[0] in kinds]
    assert curves == {tag: [step for step, _ in recorded.points[tag]] for tag in tags}


def test_disk_full(
    tell: Any, runtime: str, train: Any, recorded: Any, small_disk: Disk, tmp_path: Path
) -> None:
    logdir = small_disk.folder / "log"
    flags = [*FLAGS, f"--runtime={runtime}"]
    full = train(*flags, ENDLESS, logdir=logdir).wait()
    assert full.code == 1
    assert re.fullmatch(
        rf"error: checkpoint {logdir}/model\.ckpt-\d+ cannot be written \(No space left on device\)"
        "; earlier checkpoints stay; free or repair the folder, and the same command resumes from "
        "the newest",
        full.err.strip().splitlines()[-1],
    )
    assert "Traceback" not in full.err
    again = train(*flags, ENDLESS, logdir=logdir).wait()
    assert again.code in (1, 2)  # The latter where nothing could be recorded.
    assert re.fullmatch(r"error: .* \(No space left on device\); .*\n", again.err), again.err
    small_disk.resize(64)
    saved = max(int(path.stem.split("-")[1]) for path in logdir.glob("*.index"))
    assert not [*logdir.glob("*tempstate*"), *logdir.glob("*.tmp*")]
    more = train(*flags, f"--max_steps={saved + 100}", logdir=logdir).wait()
    assert (more.code, more.err) == (0, "")
    assert f"resuming from step {saved} in {logdir}" in more.out
    kept = tmp_path / "kept"  # For TensorBoard, which looks when the disk is gone.
    shutil.copytree(str(logdir), str(kept))
    assert recorded(kept).run[1] == "FINISHED"
    tell("ends with 1; when there is room, goes on from the last checkpoint")


def test_second_start(tell: Any, runtime: str, train: Any) -> None:
    flags = [*FLAGS, f"--runtime={runtime}", ENDLESS]
    first = train(*flags).wait_until_it_says("^Step: ")
    second = train(*flags, logdir=first.logdir).wait()
    assert second.code == 2
    assert f"process {first.pid}" in second.err.splitlines()[-1]
    wait_for_step(first, last_step(first.out) + EVERY)
    assert first.send(signal.SIGTERM).wait().code == 143
    tell("is refused with 2, and a line that names the first run; that trains on")


def test_closed_terminal(tell: Any, runtime: str, train: Any, recorded: Any) -> None:
    run = train(*FLAGS, f"--runtime={runtime}", ENDLESS).wait_until_it_says("^Step: ")
    wait_for_step(run, EVERY)
    assert run.send(signal.SIGHUP).wait().code == 129
    found = recorded(run.logdir)
    last = max(step for points in found.points.values() for step, _ in points)
    assert found.checkpoints[-1] >= last
    assert found.run[1] == "KILLED"
    tell("saves what it has reached, and ends with 129")


def test_output_cannot_be_written(tell: Any, runtime: str, train: Any, recorded: Any) -> None:
    with open("/dev/full", "wb") as full:  # As a file of a disk without room.
        run = train(*FLAGS, f"--runtime={runtime}", f"--max_steps={2 * EVERY}", stdout=full).wait()
    assert run.code == 0, run.err
    assert recorded(run.logdir).checkpoints[-1] == 2 * EVERY
    tell("trains on, and ends with 0")


def test_newest_checkpoint_torn(tell: Any, runtime: str, train: Any, recorded: Any) -> None:
    flags = [*FLAGS, f"--runtime={runtime}"]
    logdir = train(*flags, f"--max_steps={3 * EVERY}").wait().logdir
    steps = sorted(int(path.stem.split("-")[1]) for path in logdir.glob("*.index"))
    data = logdir / f"model.ckpt-{steps[-1]}.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:1000])
    more = train(*flags, f"--max_steps={steps[-1] + EVERY}", logdir=logdir).wait()
    assert (more.code, more.err) == (0, "")
    torn = rf"^checkpoint .*/model.ckpt-{steps[-1]} cannot be read \(.*\); trying the one before$"
    assert re.search(torn, more.out, re.M), more.out
    assert f"resuming from step {steps[-2]} in {logdir}" in more.out
    found = recorded(logdir)
    assert found.checkpoints[-1] == steps[-1] + EVERY
    assert found.run[1] == "FINISHED"
    tell("names it, and goes on from the one before")


def test_log_folder_removed(tell: Any, runtime: str, train: Any) -> None:
    training = train(*FLAGS, ENDLESS, f"--runtime={runtime}").wait_until_it_says("^Step: ")
    shutil.rmtree(str(training.logdir), ignore_errors=True)
    training.wait_until_it_says("^TensorBoard: no more events are written to .* continues$")
    reached = last_step(training.out)
    wait_for_step(training, reached + 10 * EVERY)
    assert training.send(signal.SIGTERM).wait().code == 143
    assert training.err == ""
    assert len(re.findall("^TensorBoard: no more events", training.out, re.M)) == 1
    assert len(re.findall("^MLflow: .* was removed, and with it", training.out, re.M)) == 1
    kept = [int(path.stem.split("-")[1]) for path in training.logdir.glob("model.ckpt-*.index")]
    assert max(kept) >= reached
    tell("says so once, trains on, and keeps checkpoints in a new one")


def test_clock_set_back(tell: Any, runtime: str, train: Any, recorded: Any, tmp_path: Path) -> None:
    """By an hour, amid a training, which is then stopped and gone on with."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, time\n"
        "_time, _time_ns = time.time, time.time_ns\n"
        f"def _back(): return 3600 if os.path.exists({str(tmp_path / 'back')!r}) else 0\n"
        "time.time = lambda: _time() - _back()\n"
        "time.time_ns = lambda: _time_ns() - _back() * 10 ** 9\n"
    )
    env = {"PYTHONPATH": f"{tmp_path}:{PACKAGES}"}
    flags = [*FLAGS, "--summary_every=10", f"--runtime={runtime}"]
    first = train(*flags, ENDLESS, env=env).wait_until_it_says("^Step: ")
    (tmp_path / "back").touch()
    reached = last_step(first.out)
    wait_for_step(first, reached + 10 * EVERY)
    assert first.send(signal.SIGTERM).wait().code == 143
    saved = max(int(path.stem.split("-")[1]) for path in first.logdir.glob("*.index"))
    more = train(*flags, f"--max_steps={saved + 100}", logdir=first.logdir, env=env).wait()
    assert (more.code, more.err) == (0, "")
    found = recorded(first.logdir)
    times = [event.wall_time for event in found.events]
    assert max(times) - min(times) > 3000
    assert_all_is_in(found, "FINISHED", first.folder / "mlflow.db")
    tell("trains on, and its curves have each step once, in order")


def test_MLflow_dead(tell: Any, runtime: str, train: Any, recorded: Any, server: Any) -> None:
    with ports.reserve() as closed:
        flags = [f"--tracking_uri=http://{closed.address}", f"--runtime={runtime}"]
        training = train(*FLAGS, *flags, "--max_steps=100").wait()
    assert (training.code, training.err) == (0, "")
    assert "\ndone\n" in training.out
    folder = server(closed.port)
    send_the_rest(training)
    assert_all_is_in(recorded(training.logdir), "FINISHED", folder / "mlflow.db")
    kept = {path.name for path in (folder / "artifacts").rglob("*")}
    assert {"console.log", "learning_curve.png", "model.ckpt-100.index"} <= kept
    tell("trains on; a command that it prints sends all, when MLflow is there")


def test_MLflow_back_again(tell: Any, runtime: str, train: Any, recorded: Any, server: Any) -> None:
    with ports.reserve() as closed:
        flags = [f"--tracking_uri=http://{closed.address}", f"--runtime={runtime}"]
        training = train(*FLAGS, *flags, "--summary_every=1000", "--eval_every=1000", ENDLESS)
        training.wait_until_it_says("^Step: ")
    folder = server(closed.port)
    deadline = time.monotonic() + 100
    while not (training.logdir / "mlflow_run_id").exists():
        assert time.monotonic() < deadline, (training.logdir / "tracking.log").read_text()
        time.sleep(0.1)
    assert training.send(signal.SIGTERM).wait().code == 143
    assert training.err == ""
    if LEFT.search(training.out):
        send_the_rest(training)
    assert_all_is_in(recorded(training.logdir), "KILLED", folder / "mlflow.db")
    tell("trains on, and sends all by itself")


@pytest.mark.timeout(600)
def test_MLflow_slow(tell: Any, runtime: str, train: Any, recorded: Any, server: Any) -> None:
    """It takes ten seconds for each answer."""
    with ports.reserve() as behind:
        pass
    folder = server(behind.port)
    with ports.reserve() as closed:
        pass
    relay = Relay(closed.port, f"http://{behind.address}", AN_ANSWER_SECS)
    flags = [f"--tracking_uri=http://{closed.address}", f"--runtime={runtime}"]
    training = train(*FLAGS, *flags, "--max_steps=100").wait_until_it_says("^done$")
    done = time.time()
    assert (training.wait().code, training.err) == (0, "")
    assert training.ended - done < 15
    send_the_rest(training)
    relay.close()
    assert_all_is_in(recorded(training.logdir), "FINISHED", folder / "mlflow.db")
    tell("trains on, and waits a few seconds in the end; a command that it prints sends the rest")


def test_SQLite_locked(tell: Any, runtime: str, train: Any, recorded: Any) -> None:
    """By another process, from the first step to the last."""
    training = train(*FLAGS, "--max_steps=2000", f"--runtime={runtime}")
    training.wait_until_it_says("^Step: ")
    store = training.folder / "mlflow.db"
    with contextlib.closing(sqlite3.connect(str(store), timeout=60)) as connection:
        connection.execute("begin exclusive")
        training.wait_until_it_says("^done$")
        connection.rollback()
    assert training.wait().code == 0
    assert training.err == ""
    assert not LEFT.search(training.out)
    assert_all_is_in(recorded(training.logdir), "FINISHED", store)
    tell("trains on, and waits for it in the end, up to 180 s")
