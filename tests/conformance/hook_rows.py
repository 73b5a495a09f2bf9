"""One run of a monitored session with a hook of each kind, and what each of them has seen.

`api` has the names, be it `tf.compat.v1.train` or `compat`. This module imports nothing of ours, so
that TensorFlow 1.15 alone can tell what the numbers have to be:

    python hook_rows.py > golden_hook_rows.json
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable

import numpy as np

CALLS = [(np.float32(1), np.float32(y)) for y in (0, 0, 0, 0, np.nan, 0, 0)]
# In a cluster a program has one session; tests/compat/test_jobs.py has these there.
ALONE = [
    "tf.train.MonitoredSession",
    "tf.train.ChiefSessionCreator",
    "tf.train.WorkerSessionCreator",
    "tf.train.SingularMonitoredSession",
]
SECTIONS = {
    "Sessions and hooks": [
        "tf.train.MonitoredTrainingSession",
        *ALONE,
        "tf.train.Scaffold",
        "tf.train.SessionRunHook",
        "tf.train.NanTensorHook",
        "tf.train.StopAtStepHook",
        "tf.train.LoggingTensorHook",
        "tf.train.FinalOpsHook",
        "tf.train.StepCounterHook",
        "tf.train.CheckpointSaverHook",
        "tf.train.CheckpointSaverListener",
        "tf.train.SummarySaverHook",
    ],
    "Summaries": ["tf.summary.scalar", "tf.summary.histogram", "tf.summary.image"],
}
DIFFERENCES = {
    "tf.train.StopAtStepHook": "two workers: up to two steps more on legacy, exact for a "
    "`compat.step` on modern",
}


def build(tf1: Any) -> tuple[Any, Any]:
    """Returns the placeholders of a call, and a weight that each update brings nearer to `x`."""
    x, y = tf1.placeholder(tf1.float32, []), tf1.placeholder(tf1.float32, [])
    global_step = tf1.train.get_or_create_global_step()
    w = tf1.get_variable("w", initializer=np.float32(0))
    loss = tf1.square(w - x)
    tf1.summary.scalar("loss", loss)
    tf1.summary.histogram("inputs", tf1.stack([x, 2 * x, 4 * x]))
    tf1.summary.image("square", tf1.ones([1, 3, 2, 1]) * x)
    train = tf1.train.GradientDescentOptimizer(0.25).minimize(loss, global_step=global_step)
    return (x, y), {"w": w, "loss": loss, "risk": y + 0.0, "train": train}


def observe(  # noqa: C901
    api: Any, tf1: Any, folder: str, device: Any = None, master: str = ""
) -> dict[str, list[float]]:
    """Runs a session and, alone, those of `ALONE`; returns what was seen, by name, as numbers."""
    folder += "/logs"
    with tf1.device(device):
        inputs, tensors = build(tf1)
    weight = tensors.pop("w")

    def run(session: Any, *arrays: Any) -> float:
        return float(session.run(tensors, dict(zip(inputs, arrays)))["loss"])

    seen: dict[str, list[float]] = {name: [] for names in SECTIONS.values() for name in names}

    class Order(api.SessionRunHook):  # type: ignore[misc]
        """Notes the calls that it gets, and what it fetches."""

        order = seen["tf.train.SessionRunHook"]

        def begin(self) -> None:
            self.order.append(100)
            self.step = tf1.train.get_global_step()

        def after_create_session(self, session: Any, coord: Any) -> None:
            self.order.append(200 + int(session.run(self.step)) + coord.should_stop())

        def before_run(self, run_context: Any) -> Any:
            self.order.append(300)
            fetched = {"loss": tensors["loss"], "step": tf1.train.get_global_step()}
            return api.SessionRunArgs(fetched)

        def after_run(self, run_context: Any, run_values: Any) -> None:
            self.order.append(float(run_values.results["loss"]))
            self.order.append(int(run_context.session.run(self.step)))

        def end(self, session: Any) -> None:
            self.order.append(400 + int(session.run(self.step)))

    class Stops(api.SessionRunHook):  # type: ignore[misc]
        """Notes whether the hook before it has requested a stop, and withdraws that."""

        def __init__(self, name: str) -> None:
            self.found = seen[name]

        def after_run(self, run_context: Any, run_values: Any) -> None:
            self.found.append(float(run_context.stop_requested))
            run_context._stop_requested = False

    class Listener(api.CheckpointSaverListener):  # type: ignore[misc]
        steps = seen["tf.train.CheckpointSaverListener"]

        def before_save(self, session: Any, global_step_value: Any) -> None:
            self.steps.append(int(global_step_value))

        def end(self, session: Any, global_step_value: Any) -> None:
            self.steps.append(-int(global_step_value))

    def noted(values: Any) -> str:
        seen["tf.train.LoggingTensorHook"].append(float(values["loss"]))
        return "noted"

    scaffold = api.Scaffold(init_fn=lambda _, session: weight.load(-1.0, session))
    final = api.FinalOpsHook({"w": weight})
    saver = api.CheckpointSaverHook(
        folder + "/own", save_steps=3, scaffold=scaffold, listeners=[Listener()]
    )
    hooks = [
        Order(),
        api.NanTensorHook(tensors["risk"], fail_on_nan_loss=False),
        Stops("tf.train.NanTensorHook"),
        api.StopAtStepHook(num_steps=6),
        Stops("tf.train.StopAtStepHook"),
        api.LoggingTensorHook({"loss": tensors["loss"]}, every_n_iter=2, formatter=noted),
        final,
    ]
    losses = seen["tf.train.MonitoredTrainingSession"]
    arguments = {"save_checkpoint_steps": 2, "save_summaries_steps": 2, "log_step_count_steps": 2}
    with api.MonitoredTrainingSession(
        master,
        checkpoint_dir=folder,
        scaffold=scaffold,
        hooks=hooks,
        chief_only_hooks=[saver],
        **arguments,
    ) as session:
        for x, y in CALLS:
            losses.append(run(session, x, y))
    seen["tf.train.Scaffold"] = [losses[0]]
    seen["tf.train.FinalOpsHook"] = [float(final.final_ops_values["w"])]
    names = [path.stem.partition("-")[2] for path in Path(folder).glob("model.ckpt-*.index")]
    seen["tf.train.CheckpointSaverHook"] = sorted(map(float, names))
    read_events(tf1, folder, seen)
    if not master:
        run_alone(api, folder, lambda session: run(session, *CALLS[0]), seen)
    return seen


def run_alone(api: Any, folder: str, run: Callable[[Any], float], seen: Any) -> None:
    """Resumes from the checkpoint: by a chief and a worker of one server, then by one alone."""
    target = api.Server.create_local_server().target
    chief = api.ChiefSessionCreator(master=target, checkpoint_dir=folder)
    with api.MonitoredSession(chief, hooks=[api.StopAtStepHook(num_steps=3)]) as session:
        seen["tf.train.ChiefSessionCreator"].append(run(session))
        while not session.should_stop():
            seen["tf.train.MonitoredSession"].append(run(session))
    with api.MonitoredSession(api.WorkerSessionCreator(master=target)) as session:
        seen["tf.train.WorkerSessionCreator"].append(run(session))
    with api.SingularMonitoredSession(checkpoint_dir=folder) as session:
        seen["tf.train.SingularMonitoredSession"] += [run(session), run(session.raw_session())]


def read_events(tf1: Any, folder: str, seen: dict[str, list[float]]) -> None:
    """Adds what the event files of a folder show."""
    files = sorted(Path(folder).glob("events.out.tfevents.*"))
    events = [event for file in files for event in tf1.train.summary_iterator(str(file))]
    for event in events:
        for value in event.summary.value:
            if value.tag.endswith("/sec"):
                seen["tf.train.StepCounterHook"].append(event.step)
            elif value.HasField("histo"):
                h = value.histo
                seen["tf.summary.histogram"] += [event.step, h.num, h.sum, h.min, h.max]
            elif value.HasField("image"):
                image = value.image
                seen["tf.summary.image"] += [event.step, image.height, image.width]
            else:
                seen["tf.train.SummarySaverHook"].append(event.step)
                seen["tf.summary.scalar"].append(value.simple_value)


def native() -> dict[str, list[float]]:
    """Returns what TensorFlow alone does: graph and session."""
    import tensorflow

    tf1 = tensorflow.compat.v1
    with tf1.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
        return observe(tf1.train, tf1, folder)


if __name__ == "__main__":
    json.dump(native(), sys.stdout, indent=1)
