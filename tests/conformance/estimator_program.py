"""Runs the program of `estimator_rows.py` by `compat`, or one task; prints what it saw."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import compat
from compat import tf1
from compat.estimator.lifted_inputs import Inputs

if TYPE_CHECKING:
    from tests.conformance.estimator_rows import dataset_of, model_fn_of, observe
else:
    from estimator_rows import dataset_of, model_fn_of, observe

RATE = 0.25


def run_task(settings: dict[str, Any]) -> dict[str, float]:
    """Runs a task of TF_CONFIG; returns what is in the folder of the model at its end, if any."""
    jobs = {job: tasks for job, tasks in settings["cluster"].items() if job != "evaluator"}
    task = {"type": settings["job"], "index": settings["index"]}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": jobs, "task": task})
    api = compat.estimator
    config = api.RunConfig(
        settings["folder"],
        save_checkpoints_steps=10,
        keep_checkpoint_max=100,  # None is deleted before the evaluator has read it.
        experimental_max_worker_delay_secs=0,
    )
    model = api.Estimator(model_fn_of(api, tf1, []), config=config, params={"rate": RATE})
    api.train_and_evaluate(
        model,
        api.TrainSpec(dataset_of(tf1), max_steps=settings["max_steps"]),
        api.EvalSpec(dataset_of(tf1, epochs=1), None, start_delay_secs=0, throttle_secs=1),
    )
    if settings["job"] == "worker" and model.latest_checkpoint() is None:
        return {}  # It has made all updates before the chief has saved the first one.
    step, weight = (model.get_variable_value(name) for name in ("global_step", "dense/kernel"))
    return {"step": int(step), "weight": weight.item()}


def refused(modern: bool) -> dict[str, str]:
    """Returns the errors of what cannot be done, by name."""
    dataset = dataset_of(tf1)

    def queue() -> Any:
        (x,) = tf1.train.slice_input_producer([[1.0, 2.0]])
        return {"x": x}, x

    def two() -> Any:
        return tuple(tf1.data.make_one_shot_iterator(dataset()).get_next()[1] for _ in range(2))

    cases = {"queues": queue, "iterators": two, "three values": lambda: (1.0, 2.0, 3.0)}
    found = {}
    for name, input_fn in cases.items() if modern else ():
        try:
            Inputs(input_fn).tensors()
        except compat.UserError as error:
            found[name] = str(error)
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": ["a:1", "b:1"]}})
    try:
        compat.estimator.RunConfig()
    except compat.UserError as error:
        found["TF_CONFIG"] = str(error)
    return found


def main(settings: dict[str, Any]) -> None:
    compat.select_runtime(settings["runtime"])
    if "cluster" in settings:
        print(json.dumps(run_task(settings)))
        return
    if "refused" in settings:
        print(json.dumps(refused(settings["runtime"] == "modern")))
        return
    import pandas

    print(json.dumps(observe(compat.estimator, tf1, str(Path.cwd()), pandas)))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
