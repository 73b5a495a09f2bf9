"""A new run begins with the values of another one, where the variables are the same."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

from compat.checkpoint import files
from tests.experiments.conftest import Train, Training

pytestmark = [pytest.mark.once, pytest.mark.long]
ONE_UPDATE = ("--max_steps=1", "--learning_rate=1e-30")


@pytest.fixture(scope="module")
def warm(
    train: Train,
    runtimes: list[str],
    locals_by_runtime: dict[str, Training],
    read_weights: Callable[..., Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Training]:
    """An update by nothing, after the values of another run on each runtime, and what differs."""
    other = locals_by_runtime[runtimes[0]].logdir
    (values,) = read_weights((other, 48))
    values["output/kernel"] = values["output/kernel"][:, :7]
    del values["output/bias"]
    partly = str(tmp_path_factory.mktemp("partly") / "other")
    files.write(partly, values)
    begun: dict[str, Any] = {
        name: train(*ONE_UPDATE, f"--warm_start={other}", f"--runtime={name}") for name in runtimes
    }
    begun["partly"] = train(*ONE_UPDATE, f"--warm_start={partly}", "--optimizer=adam")
    nothing = str(tmp_path_factory.mktemp("nothing") / "other")
    files.write(nothing, {"hidden/bias": np.zeros(100), "global_step": values["global_step"]})
    begun["nothing"] = train(f"--warm_start={nothing}")
    begun["missing"] = train("--warm_start=missing")
    begun["elsewhere"] = train("--warm_start=nowhere://bucket/model")
    return {name: training.wait() for name, training in begun.items()}


def test_values_are_those_of_the_other_run(
    warm: dict[str, Training],
    locals_by_runtime: dict[str, Training],
    runtimes: list[str],
    read_weights: Callable[..., Any],
) -> None:
    best = locals_by_runtime[runtimes[0]].logdir / "best"
    (step,) = (int(path.stem.split("-")[1]) for path in best.glob("*.index"))
    for name in runtimes:
        assert warm[name].code == 0, warm[name].err
        line = f"warm start: 4 variables begin with the values of {best}/model.ckpt-{step}"
        assert line in warm[name].out.splitlines()
    old, *new = read_weights((best, step), *((warm[name].logdir, 1) for name in runtimes))
    for values in new:
        assert values.pop("global_step") == 1
        for name, value in values.items():
            np.testing.assert_array_equal(value, old[name], err_msg=name)


def test_others_begin_anew_and_are_named(warm: dict[str, Training]) -> None:
    assert warm["partly"].code == 0, warm["partly"].err
    (line,) = [line for line in warm["partly"].out.splitlines() if "warm start" in line]
    assert line.startswith("warm start: 2 variables begin with the values of ")
    assert line.endswith(
        "/other; others begin anew: output/bias is missing, "
        "output/kernel is float32 [100, 7] instead of float32 [100, 10]"
    )


def test_what_has_nothing_for_the_model_is_refused(warm: dict[str, Training]) -> None:
    assert warm["nothing"].code == 2
    assert (
        "other has no variable of this model: hidden/bias is float64 [100] instead of float32 "
        "[100]; hidden/kernel is missing; output/bias is missing and 1 more; name one of a model "
        "with the same names and shapes, or" in warm["nothing"].err
    )
    assert not (warm["nothing"].logdir / "checkpoint").exists()
    assert warm["missing"].code == 2
    expected = "error: --warm_start=missing is not a folder; name the log folder of a run\n"
    assert warm["missing"].err == expected
    assert warm["elsewhere"].code == 2
    assert warm["elsewhere"].err.startswith("error: --warm_start=nowhere://bucket/model cannot be")
    assert warm["elsewhere"].err.count("\n") == 1
