"""The law of epochs: each worker uses every batch of its data once in each, and then it waits."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiments.launching import task_record
from tests.experiments.conftest import Training

pytestmark = [pytest.mark.once, pytest.mark.long]
PROGRAM = Path(__file__).parent / "programs" / "counted.py"
Start = Callable[..., Training]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: Any, start_program: Any) -> Iterator[Start]:
    """Starts the program that counts how often each example is used, and waits for its end."""
    started: list[Training] = []

    def begin(*flags: str, workers: int = 1, logdir: Path | None = None) -> Training:
        folder: Path = tmp_path_factory.mktemp("counted")
        shutil.copy(str(PROGRAM), str(folder))
        logdir = logdir or folder / "logs"
        place = ["--strategy=ps", "--num_ps=1", f"--num_workers={workers}"] if workers > 1 else []
        argv = [sys.executable, PROGRAM.name, *place, *flags, f"--logdir={logdir}"]
        started.append(Training(argv, folder, logdir, {"TF_CPP_MIN_LOG_LEVEL": "3"}, start_program))
        return started[-1].wait()

    yield begin
    for training in started:
        training.end()


def counts(training: Training) -> list[int]:
    """Returns how often each example was used."""
    assert training.code == 0, training.out + training.err
    (found,) = re.findall(r"RESULT (\{.*)", training.out)
    return [int(count) for count in json.loads(found)["counts"]]


def seen(training: Training) -> dict[str, list[int]]:
    """Returns the batches and examples that each worker has used, beside the last checkpoint."""
    entries = json.loads((training.logdir / "seen.json").read_text())
    found: dict[str, list[int]] = entries[max(entries, key=int)]
    return found


def test_uneven_shards_are_used_once_each(runtime: str, counted: Start, record: Any) -> None:
    training = counted("--sizes=20,100", f"--runtime={runtime}", workers=2)
    assert counts(training) == [1] * 120
    assert seen(training) == {"worker 0": [10, 20], "worker 1": [50, 100]}
    events = [e for e in task_record.read(str(training.logdir)) if e["event"] == "updates"]
    assert {e["task"]: e["examples"] for e in events} == {"worker 0": 20, "worker 1": 100}
    points = record(training.logdir).points
    found = {tag: points[tag][-1][1].simple_value for tag in points if "examples_seen" in tag}
    assert found == {
        "examples_seen": 120,
        "examples_seen/worker_0": 20,
        "examples_seen/worker_1": 100,
    }


@pytest.mark.slow
@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=3).filter(lambda s: sum(s) >= 3),
    batch_size=st.integers(1, 3),
    epochs=st.integers(1, 2),
    kind=st.sampled_from(["known", "hidden", "arrays"]),
)
def test_law(
    runtime: str, counted: Start, sizes: list[int], batch_size: int, epochs: int, kind: str
) -> None:
    flags = {"known": [], "hidden": ["--hides"], "arrays": ["--arrays"]}[kind]
    flags += [f"--sizes={','.join(map(str, sizes))}", f"--batch_size={batch_size}"]
    training = counted(*flags, f"--epochs={epochs}", f"--runtime={runtime}", workers=len(sizes))
    found, number = counts(training), sum(sizes)
    used = seen(training)
    if kind != "arrays":
        assert found == [epochs] * number
        batches = [epochs * -(-size // batch_size) for size in sizes]
        expected = {
            f"worker {i}": [batches[i], epochs * size] for i, size in enumerate(sizes) if size
        }
        assert {name: both for name, both in used.items() if both[0]} == expected
        return
    # Each worker makes passes over all examples; those that fill no batch begin the next pass.
    each = epochs * (number // batch_size) * batch_size
    assert sum(found) == len(sizes) * each
    assert len(sizes) * (each // number) <= min(found)
    assert max(found) <= len(sizes) * -(-each // number)
    assert sum(examples for _, examples in used.values()) == sum(found)


@pytest.mark.slow
@pytest.mark.parametrize("hides", [[], ["--hides"]])
def test_a_resumed_run_goes_on_in_its_stream(
    runtime: str, counted: Start, hides: list[str]
) -> None:
    flags = ["--sizes=40", f"--runtime={runtime}", "--epochs=2", "--checkpoint_every=7", *hides]
    flags += ["--steps_per_loop=1"]
    killed = counted(*flags, "--dies_at=30")
    assert killed.code == 9
    resumed = counted(*flags, logdir=killed.logdir)
    again = "each worker resumes its stream of data; a few batches may be used again"
    assert f"resuming from step 28 in {killed.logdir}; {again}" in resumed.out
    assert counts(resumed) == [2] * 40
    assert seen(resumed) == {"worker 0": [40, 80]}
    over = counted(*flags, logdir=killed.logdir)
    assert "is complete, at step 40" in over.out
    more = counted(*flags, "--epochs=3", logdir=killed.logdir)
    assert counts(more) == [3] * 40


@pytest.mark.slow
def test_a_resumed_cluster_uses_each_batch_again_at_the_most(runtime: str, counted: Start) -> None:
    flags = ["--sizes=80,160", f"--runtime={runtime}", "--checkpoint_every=20"]
    flags += ["--steps_per_loop=1", "--max_restarts=0"]
    killed = counted(*flags, "--dies_at=50", workers=2)
    assert killed.code != 0
    resumed = counted(*flags, logdir=killed.logdir, workers=2)
    found = counts(resumed)
    assert min(found) == 1
    assert max(found) <= 2
