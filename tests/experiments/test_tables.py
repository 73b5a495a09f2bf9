"""Tables of a recommender in a cluster: whole in a checkpoint, whatever their parts were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compat.checkpoint import files
from compat.checkpoint.io import CheckpointIO

pytestmark = [pytest.mark.once, pytest.mark.slow]

SMALL = ["--examples=1000", "--values=50", "--buckets=40", "--width=4", "--hidden=8"]
ROWS = 40 * 26


@pytest.mark.parametrize("ids", ["hashed", "mapped"])
def test_tables_and_slots_go_on_with_other_parts(
    start: Any, runtimes: list[str], ids: str, tmp_path: Path
) -> None:
    """Two servers, three, and one, in turn on each runtime."""
    order = [runtimes[0], runtimes[-1], runtimes[0]]
    states: list[dict[str, np.ndarray]] = []
    for leg, (runtime, servers) in enumerate(zip(order, (2, 3, 1)), 1):
        flags = [f"--ids={ids}", f"--runtime={runtime}", f"--max_steps={12 * leg}"]
        flags += ["--strategy=ps", f"--num_ps={servers}", "--num_workers=1"]
        training = start(
            *SMALL, *flags, module="experiments.recommender", logdir=tmp_path / "logs"
        ).wait()
        assert training.code == 0, training.out + training.err
        states.append(_state(tmp_path / "logs"))
    first = states[0]
    assert all(list(state) == list(first) for state in states)
    assert all(state[n].shape == first[n].shape for state in states for n in first)
    squares = [name for name in first if name.endswith("/Adagrad")]
    assert {name.partition("/")[0] for name in squares} >= {"deep", "wide"}
    for before, after in zip(states, states[1:]):
        for name in squares:
            assert (after[name] >= before[name]).all()  # None began again.
        for name in ("deep", "wide"):
            assert before[name].shape[0] == ROWS + (27 if ids == "mapped" else 0)
            unread = (after[f"{name}/Adagrad"] == before[f"{name}/Adagrad"]).all(axis=1)
            assert 0 < unread.sum() < len(unread)
            if ids == "mapped":  # A row that was assigned meanwhile starts anew.
                owned = before["keys"].reshape(-1) != 0
                unread &= np.append(owned, np.ones(len(unread) - len(owned), bool))
            assert (after[name][unread] == before[name][unread]).all()
    if ids == "mapped":
        kept = states[0]["keys"] != 0
        assert 0 < kept.sum() < ROWS
        assert (states[-1]["keys"][kept] == states[0]["keys"][kept]).all()
        assert (states[-1]["seen"] >= states[0]["seen"]).all()


@pytest.mark.parametrize("ids", ["hashed", "mapped"])
def test_synchronous_workers_make_the_same_tables_on_each_runtime(
    start: Any, runtimes: list[str], ids: str, tmp_path: Path
) -> None:
    """Whose rows are on two servers; of those that are assigned, the first worker decides which."""
    if len(runtimes) < 2:
        pytest.skip("there is one runtime")
    states = []
    for runtime in runtimes:
        flags = ["--strategy=ps", "--num_ps=2", "--num_workers=2", f"--runtime={runtime}"]
        training = start(
            *SMALL,
            *flags,
            f"--ids={ids}",
            "--sync",
            "--max_steps=12",
            module="experiments.recommender",
            logdir=tmp_path / runtime,
        ).wait()
        assert training.code == 0, training.out + training.err
        states.append(_state(tmp_path / runtime))
    assert list(states[0]) == list(states[1])
    for name, values in states[0].items() if ids == "hashed" else ():
        np.testing.assert_allclose(states[1][name], values, rtol=1e-4, atol=1e-5, err_msg=name)


def _state(logdir: Path) -> dict[str, np.ndarray]:
    """Returns what the newest checkpoint of a folder holds, by name."""
    return dict(sorted(files.read(CheckpointIO(str(logdir)).history()[-1]).items()))
