"""A training in one process, on each runtime: what it says, and how it ends."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import shutil
import struct
import termios
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.once
LINE = re.compile(
    r"Step: (\d+),  Epoch: ([ \d]\d),  Batch: ([ \d][ \d]\d) of ([ \d][ \d]\d),"
    r"  Cost: (\d+\.\d{4}),  AvgTime: (\d+\.\d{2})ms"
    r"(?:,  Validation-Cost: (\d+\.\d{4}),  Validation-Accuracy: (\d\.\d{4})(,  best)?)?"
)
# As a repository's neighbour it is found by developers; others have the same tests on digits.
SHARED = Path(__file__).resolve().parents[3] / "shared"
MNIST = SHARED / "mnist"


def test_ends_well_and_leaves_nothing_running(local: Any) -> None:
    assert local.code == 0
    assert local.err == ""
    assert local.left_running() == []


def test_lines_are_those_of_2016(local: Any) -> None:
    lines = local.out.splitlines()
    found = [LINE.fullmatch(line) for line in lines[:12]]
    assert all(found), local.out
    numbers = [tuple(int(match.group(i)) for i in (1, 2, 3, 4)) for match in found if match]
    assert numbers == [
        (12 * (epoch - 1) + batch, epoch, batch, 12)
        for epoch in (1, 2, 3, 4)
        for batch in (5, 10, 12)
    ]
    # Validation is beside the loss, at each end of an epoch, and its last cost is the final one.
    evaluated = [match.group(2) for match in found if match and match.group(7)]
    assert evaluated == [" 1", " 2", " 3", " 4"]
    cost = found[-1].group(7) if found[-1] else ""
    steps = [int(match.group(1)) for match in found if match and match.group(9)]
    tested = rf"[01]\.\d\d \(best, step {steps[-1]}\), [01]\.\d\d \(last, step 48\)"
    if steps[-1] == 48:
        tested = r"[01]\.\d\d \(best and last, step 48\)"
    assert re.fullmatch(f"Test-Accuracy: {tested}", lines[12])
    assert re.fullmatch(r"Total Time: \d+\.\d\ds", lines[13])
    assert lines[14:16] == [f"Final Cost: {cost} (validation, step 48)", "done"]


def test_last_lines_are_commands_that_show_the_training(local: Any) -> None:
    board, store, *sent, page = local.out.splitlines()[16:]
    # A run that ends before its record has arrived says so.
    assert all(re.match(r"MLflow: \S", line) for line in sent)
    address = r"http://127.0.0.1:5000/#/experiments/\d+/runs/\w{32}\?workflowType=machine_learning"
    assert re.fullmatch(f"This run:     {address}", page)
    shown = dict(line.split(":  ", 1) for line in (board, store))
    commands = {name: shlex.split(command) for name, command in shown.items()}
    assert {name: words[1:] for name, words in commands.items()} == {
        "TensorBoard": ["--logdir", str(local.logdir)],
        "MLflow": ["ui", "--backend-store-uri", "sqlite:///mlflow.db"],
    }
    # They can be pasted, also where the environment of this Python is not active.
    programs = [Path(words[0]) for words in commands.values()]
    assert [program.name for program in programs] == ["tensorboard", "mlflow"]
    assert all(shutil.which(str(program)) for program in programs)


def test_lines_are_kept(local: Any) -> None:
    assert (local.logdir / "console.log").read_text(encoding="utf-8") == local.out


def test_it_learns(local: Any) -> None:
    costs = [float(match.group(5)) for match in LINE.finditer(local.out)]
    assert costs[-1] < costs[0] / 2
    (accuracy,) = re.findall(r"Test-Accuracy: ([\d.]+)", local.out)
    assert float(accuracy) > 0.5


def test_runtimes_agree(locals_by_runtime: dict[str, Any]) -> None:
    columns = [
        [(match.group(1), float(match.group(5))) for match in LINE.finditer(training.out)]
        for training in locals_by_runtime.values()
    ]
    for column in columns:
        assert [step for step, _ in column] == [step for step, _ in columns[0]]
        costs = [cost for _, cost in columns[0]]
        assert [cost for _, cost in column] == pytest.approx(costs, abs=2e-4)


def test_checkpoints(local: Any, record: Any) -> None:
    # Every 20 updates, and for each evaluation, which is at the end of an epoch; the last five.
    assert record(local.logdir).checkpoints == [20, 24, 36, 40, 48]
    state = (local.logdir / "checkpoint").read_text()
    assert re.search('^model_checkpoint_path: ".*model.ckpt-48"', state, re.MULTILINE)


def test_nothing_else_is_left_where_it_ran(local: Any) -> None:
    store = ["mlflow-artifacts", "mlflow.db"]
    assert sorted(os.listdir(local.folder)) == [*store, "stderr", "stdout"]


@pytest.mark.long
def test_terminal_shows_a_progress_bar(train: Any) -> None:
    terminal, program = pty.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    shown: list[bytes] = []
    try:
        training = train("--max_steps=24", stdout=program)
        os.close(program)
        while True:
            shown.append(os.read(terminal, 1 << 16))
    except OSError:  # The end: Linux' answer when nobody has the other side open any more.
        pass
    finally:
        os.close(terminal)
    text = b"".join(shown).decode()
    assert training.wait().code == 0
    assert "24/24" in text or "23/24" in text
    assert "step/s" in text
    lines = re.split("[\r\n]+", text)
    assert len([line for line in lines if LINE.fullmatch(line.replace("\033[K", "").strip())]) == 2
    assert "done" in [line.strip() for line in lines]
    kept = (training.logdir / "console.log").read_text()
    # On a busy machine it also says how the rest is sent.
    first = [line.split(":")[0] for line in kept.splitlines() if not re.match(r"MLflow: \S", line)]
    expected = [
        *["Step"] * 2,
        *["Test-Accuracy", "Total Time", "Final Cost", "done", "TensorBoard", "MLflow", "This run"],
    ]
    if "sends the rest by itself" in kept:  # The page of the run may not be known yet.
        assert first in (expected[:-1], expected)
    else:
        assert first == expected


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("dataset", "flags", "least"),
    [
        ("mnist", ["--model=cnn", "--max_steps=1650"], 0.985),
        ("mnist", ["--model=resnet", "--max_steps=2200"], 0.985),
        ("fashion_mnist", ["--model=resnet", "--max_steps=6600"], 0.915),
    ],
)
def test_networks_reach_the_results_in_the_docs(
    start: Any, record: Any, dataset: str, flags: list[str], least: float, tmp_path: Path
) -> None:
    if not (SHARED / dataset).exists():
        pytest.skip(f"{dataset} is not there")
    where = [f"--dataset={dataset}", f"--data_dir={SHARED / dataset}"]
    training = start(*where, *flags, logdir=tmp_path / "run").wait(3500)
    assert training.code == 0, training.err
    ((_, value),) = record(training.logdir).points["test/accuracy"]
    assert value.simple_value > least


LAST_EPOCH = {
    "digits": "Step: 600,  Epoch: 50,  Batch:  12 of  12,",
    "mnist": "Step: 550,  Epoch:  1,  Batch: 550 of 550,",
}


@pytest.mark.slow
@pytest.mark.parametrize("source", ["digits", "mnist"] if MNIST.exists() else ["digits"])
def test_data_set_trains(train: Any, record: Any, runtime: str, source: str) -> None:
    flags = [f"--dataset={source}", f"--data_dir={MNIST}", f"--runtime={runtime}"]
    flags += ["--optimizer=adam", "--learning_rate=0.005", "--max_steps=600"]
    training = train(*flags).wait()
    assert training.code == 0, training.err
    assert LAST_EPOCH[source] in training.out
    (accuracy,) = re.findall(r"Test-Accuracy: ([\d.]+)", training.out)
    assert float(accuracy) > 0.85
    tags = dict(record(training.logdir).select("select key, value from tags"))
    assert tags["dataset"] == source
    assert tags["dataset_source"] == (
        str(MNIST) if source == "mnist" else "embedded in scikit-learn"
    )
