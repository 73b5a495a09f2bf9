"""The law of epochs: each worker uses every batch of its data once in each, and then it waits."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from compat.datasets import Batches
from experiments.launching import task_record
from tests.experiments.conftest import Training

pytestmark = [pytest.mark.once, pytest.mark.long]
PROGRAM = Path(__file__).parent / "programs" / "counted.py"
Start = Callable[..., Training]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: Any, start_program: Any) -> Iterator[Start]:
    """Starts the program that counts how often each example is used, and waits for its end."""
    started: list[Training] = []

    def begin(
        *flags: str, workers: int = 1, logdir: Path | None = None, strategy: str = "ps"
    ) -> Training:
        folder: Path = tmp_path_factory.mktemp("counted")
        shutil.copy(str(PROGRAM), str(folder))
        logdir = logdir or folder / "logs"
        place = [f"--strategy={strategy}", f"--num_workers={workers}"] if workers > 1 else []
        place += ["--num_ps=1"] if workers > 1 and strategy == "ps" else []
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
    assert [value.simple_value for _, value in points["train/准确率"]] == [2.0] * len(
        points["train/准确率"]
    )
    ((_, text),) = points["result"]
    result = text.tensor.string_val[0].decode()
    assert re.findall(r"\| (examples_seen\S*) \| (\d+) \|", result) == [
        ("examples_seen", "120"),
        ("examples_seen/worker_0", "20"),
        ("examples_seen/worker_1", "100"),
    ]


def test_law_in_one_process(start_program: Any, runtime: str, tmp_path: Path) -> None:
    """Streams, counts and whole runs, which are cut off at any time; says how many were tried."""
    argv = [sys.executable, str(PROGRAM.with_name("law.py")), runtime]
    law = Training(argv, tmp_path, None, {"TF_CPP_MIN_LOG_LEVEL": "3"}, start_program)
    try:
        assert law.wait(600).code == 0, law.out[-3000:] + law.err
        (tried,) = re.findall(r"TRIED (\{.*)", law.out)
        assert json.loads(tried) == {"streams": 60, "resumed": 50, "runs": 10}
    finally:
        law.end()


def used_by_law(sizes: list[int], batch_size: int, epochs: int, runtime: str) -> list[int]:
    """Returns how often the workers use each example of arrays, which all of them have."""
    number, workers = sum(sizes), len(sizes)
    each = epochs * (number // batch_size)
    # A coordinator gives out one sequence; else each worker draws its own.
    drawn = [(0, each * workers)] if runtime == "modern" else [(i, each) for i in range(workers)]
    indices = [Batches(number, batch_size, 1, trainer).next(n).ravel() for trainer, n in drawn]
    return [int(n) for n in np.bincount(np.concatenate(indices), minlength=number)]


@pytest.mark.slow
@settings(
    max_examples=4,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@example(sizes=[3, 9], batch_size=1, epochs=2, kind="known", killed=2)
@example(sizes=[4, 0, 7], batch_size=2, epochs=1, kind="hidden", killed=0)
@example(sizes=[5, 3], batch_size=3, epochs=2, kind="arrays", killed=1)
@given(
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=3).filter(lambda s: sum(s) >= 3),
    batch_size=st.integers(1, 3),
    epochs=st.integers(1, 2),
    kind=st.sampled_from(["known", "hidden", "arrays"]),
    killed=st.integers(0, 3),
)
def test_law(
    runtime: str,
    counted: Start,
    sizes: list[int],
    batch_size: int,
    epochs: int,
    kind: str,
    killed: int,
) -> None:
    """In clusters; `killed` is a quarter of the run in which the chief is killed, or 0.

    The counts are those of the last checkpoint: what only a lost update had used is used again.
    """
    flags = {"known": [], "hidden": ["--hides"], "arrays": ["--arrays"]}[kind]
    flags += [f"--sizes={','.join(map(str, sizes))}", f"--batch_size={batch_size}"]
    flags += [f"--epochs={epochs}", f"--runtime={runtime}", "--checkpoint_every=3", "--seed=1"]
    more: dict[str, Any] = {"workers": len(sizes)}
    if killed:
        dies_at = max(1, killed * epochs * sum(sizes) // (4 * batch_size))
        flags += ["--steps_per_loop=1", *(["--max_restarts=0"] if len(sizes) > 1 else [])]
        first = counted(*flags, f"--dies_at={dies_at}", **more)
        more["logdir"] = first.logdir
    training = counted(*flags, **more)
    if killed and "is complete" in training.out:  # A chief without data reports no step.
        training = first
    found, used = counts(training), seen(training)
    if kind == "arrays":
        law = used_by_law(sizes, batch_size, epochs, runtime)
    else:
        law = [epochs] * sum(sizes)
        batches = [epochs * -(-size // batch_size) for size in sizes]
        expected = {
            f"worker {i}": [batches[i], epochs * size] for i, size in enumerate(sizes) if size
        }
        assert {name: both for name, both in used.items() if both[0]} == expected
    assert sum(examples for _, examples in used.values()) == sum(law)
    if killed and len(sizes) > 1 and runtime == "legacy":
        # Some may have come while a checkpoint was being written.
        assert all(n <= times <= 2 * n for times, n in zip(found, law)), (found, law)
    else:
        assert found == law


@pytest.mark.slow
def test_workers_that_update_together_end_with_the_shortest_shard(
    runtimes: list[str], counted: Start
) -> None:
    if "modern" not in runtimes:
        pytest.skip("TensorFlow 1.x has no such strategy")
    flags = ["--sizes=6,10", "--runtime=modern"]
    training = counted(*flags, workers=2, strategy="multi_worker")
    assert training.code == 0, training.out + training.err
    (found,) = re.findall(r"RESULT (\{.*)", training.out)
    # Half of the gradient of each batch.
    assert json.loads(found) == {"step": 3, "counts": [0.5] * 12 + [0.0] * 4}


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
    # The chief makes 80 updates, so it reaches step 50 even if the other worker is late.
    flags = ["--sizes=160,80", f"--runtime={runtime}", "--checkpoint_every=20"]
    flags += ["--steps_per_loop=1", "--max_restarts=0"]
    killed = counted(*flags, "--dies_at=50", workers=2)
    assert killed.code != 0
    resumed = counted(*flags, logdir=killed.logdir, workers=2)
    found = counts(resumed)
    assert min(found) == 1
    assert max(found) <= 2
