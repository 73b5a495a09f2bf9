"""The old API on two workers: numbers that do not depend on how their updates interleave.

`golden_pair_rows.json` is what `pair_rows.py` prints on TensorFlow 1.15.5, after as many updates.
"""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict

import pytest

if TYPE_CHECKING:
    from tests.conftest import StartCluster

HERE = Path(__file__).parent
GOLDEN: dict[str, list[float]] = json.loads((HERE / "golden_pair_rows.json").read_text("utf-8"))
TABLE = runpy.run_path(str(HERE / "pair_rows.py"))
# What a step that the chief gives to other workers can't hold, by how the error begins.
REFUSED = {
    ("tf.py_func", "modern"): "UserError: the step calls Python (tf.py_func, tf.py_function or "
}
WORKERS, STEPS, STEPPED = (TABLE[name] for name in ("WORKERS", "STEPS", "STEPPED"))
(START,) = GOLDEN["tf.train.Supervisor"]

Found = Dict[str, Any]


def run(start_cluster: StartCluster, runtime: str, **settings: Any) -> tuple[Found, int]:
    """Returns what the chief has seen, and the calls of both workers."""
    with start_cluster(HERE / "pair_program.py", runtime, ps=1, worker=WORKERS) as cluster:
        server = cluster.start("ps", **settings)
        tasks = [cluster.start("worker", index, **settings) for index in range(WORKERS)]
        chief = tasks[0].report
        # On the modern runtime a worker serves the chief, and prints nothing.
        others = [task.report for task in tasks[1:]] if runtime == "legacy" else []
        assert [task.wait().code for task in (server, *tasks)] == [0] * (1 + WORKERS)
    return chief, sum(report.get("calls", 0) for report in (chief, *others))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, runtime: str) -> str:
    return str(tmp_path_factory.mktemp(f"pair-{runtime}"))


@pytest.fixture(scope="module")
def supervised(start_cluster: StartCluster, runtime: str, folder: str) -> Found:
    return run(start_cluster, runtime, folder=folder)[0]


@pytest.mark.cluster
@pytest.mark.parametrize("name", GOLDEN)
def test_what_is_left_after_all_updates(supervised: Found, name: str, runtime: str) -> None:
    if (name, runtime) in REFUSED:
        assert supervised["refused"][name].startswith(REFUSED[name, runtime])
    else:
        assert supervised["saved"][name] == pytest.approx(GOLDEN[name], rel=1e-5)


@pytest.mark.cluster
def test_only_the_chief_writes(supervised: Found) -> None:
    assert (supervised["step"], supervised["files"]) == (START, 1)


@pytest.mark.cluster
@pytest.mark.once
@pytest.mark.endings
def test_hooks_resume_and_stop(
    start_cluster: StartCluster, runtime: str, supervised: Found, folder: str
) -> None:
    last_step = int(START) + STEPS
    found, calls = run(start_cluster, runtime, folder=folder, last_step=last_step)
    # A worker stops after a call that has read the last step, or the one before. When the last is
    # reached, each may be in a call and make no other; or one of them has read an older step and
    # makes one more, since when the other made the last two and has stopped: two at most. On the
    # modern runtime the chief counts for all.
    more = WORKERS if runtime == "legacy" else 0
    assert STEPS <= calls <= STEPS + more  # SessionRunHook, StopAtStepHook
    assert last_step <= found["step"] <= START + calls  # CheckpointSaverHook
    assert (found["files"], set(found["scalars"])) == (1, {1.0})  # SummarySaverHook
    for name, saved in found["saved"].items():
        if name not in (STEPPED, "tf.train.Supervisor"):
            assert saved == supervised["saved"][name], name  # MonitoredTrainingSession
    (before, _), (after, _) = supervised["saved"][STEPPED], found["saved"][STEPPED]
    updates = (before - after) / (0.125 * 0.5)
    assert STEPS <= updates <= STEPS + more
    assert updates == round(updates)
