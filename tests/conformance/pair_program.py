"""Runs the rows of `pair_rows.py` by `compat` as a task of a cluster with two workers.

With a supervisor or, where `last_step` is given, with hooks, which resume what is in the folder.
Prints what this task saw as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

import compat
from compat import tf, tf1

if TYPE_CHECKING:
    from tests.conformance import pair_rows as rows
    from tests.conformance.tasks import place
else:
    import pair_rows as rows
    from tasks import place

ONE = np.float32(1)
VARIABLES: dict[str, Any] = {}


def build(names: Sequence[str], returned: Sequence[str]) -> Any:
    """Returns a step that has the variables of rows, and returns the updates of some of them."""

    def step(x: Any) -> Any:
        tf1.summary.scalar("one", x)
        updates = {}
        for name in names:
            with tf1.variable_scope(rows.scope(name)):
                updates[name] = rows.ROWS[name](tf1, x)
        VARIABLES.update((v.name, v) for v in tf1.trainable_variables())
        return {"x": x + 0.0, "train": tf.group(*(updates[name] for name in returned))}

    return compat.step(step, [tf.TensorSpec([], tf.float32, name="x")])


def supervised(server: Any, folder: str, tasks: int, updates: Any, done: Any) -> dict[str, Any]:
    """Makes the calls of this task; the chief saves what is left after those of all tasks."""
    first, ready = VARIABLES[rows.scope(rows.INIT_FN) + "/w:0"], VARIABLES["done:0"]
    supervisor = compat.Supervisor(
        is_chief=server.is_chief,
        logdir=folder,
        init_fn=lambda session: session.assign({"w": first}, {"w": np.float32([rows.FIRST] * 2)}),
        save_model_secs=0,
    )
    with supervisor.managed_session(server.target) as session:
        # As in TensorFlow, a worker may come between the chief's `init_op` and its `init_fn`.
        while session.run(first)[0] < rows.FIRST:
            time.sleep(0.01)
        for _ in range(rows.CALLS * rows.WORKERS // tasks):
            for step in updates:
                session.run(step, feed_dict={"x": ONE})
        session.run(done)
        if not server.is_chief:
            return {}
        while session.run(ready) < tasks:
            time.sleep(0.01)
        step = supervisor.global_step
        prefix = supervisor.saver.save(session, supervisor.save_path, global_step=step)
    return observed(prefix, folder)  # The file of events is complete.


def hooked(server: Any, folder: str, update: Any, last_step: int) -> dict[str, Any]:
    """Resumes, and makes calls until a hook stops this task."""
    calls = []

    class Calls(compat.SessionRunHook):
        """Notes the calls that have returned."""

        def after_run(self, run_context: Any, run_values: Any) -> None:
            calls.append(1)

    with compat.MonitoredTrainingSession(
        server.target,
        server.is_chief,
        folder,
        hooks=[compat.StopAtStepHook(last_step=last_step), Calls()],
        save_checkpoint_steps=4,
        save_summaries_steps=1,
        summary_dir=folder + "/events",
    ) as session:
        while not session.should_stop():
            session.run(update, ONE)
    last = tf1.train.latest_checkpoint(folder)
    found = observed(last, folder + "/events") if server.is_chief else {}
    return {"calls": len(calls), **found}


def observed(prefix: str, folder: str) -> dict[str, Any]:
    """Returns what is in a checkpoint, the step in its name, and what is in files of events."""
    files = sorted(Path(folder).glob("events.out.tfevents.*"))
    events = [event for file in files for event in tf1.train.summary_iterator(str(file))]
    scalars = [v.simple_value for event in events for v in event.summary.value if "one" in v.tag]
    return {
        "saved": rows.saved(tf1, prefix),
        "step": int(prefix.rpartition("-")[2]),
        "files": len(files),
        "scalars": scalars,
    }


def main(settings: dict[str, Any]) -> None:
    server, setter = place(settings)
    folder, last_step = settings["folder"], settings.get("last_step")
    apart = [rows.PYTHON]
    names = [name for name in rows.ROWS if name not in apart]
    tasks = rows.WORKERS if settings["runtime"] == "legacy" else 1
    refused = {}
    with compat.device(setter):
        compat.get_or_create_global_step()
        updates = [build(names, names if last_step is None else [rows.STEPPED])]
        try:
            updates.append(build(apart, apart))
        except compat.UserError as error:
            refused = {rows.PYTHON: f"UserError: {error}"}
        done = compat.step(count, [])
    if last_step is None:
        found = supervised(server, folder, tasks, updates, done)
    else:
        found = hooked(server, folder, updates[0], last_step)
    print(json.dumps({**found, "refused": refused}))


def count() -> dict[str, Any]:
    """Counts the tasks whose calls have returned."""
    VARIABLES["done:0"] = done = tf1.get_variable("done", initializer=np.float32(0))
    return {"tasks": done.assign_add(1.0)}


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
