"""What a supervisor and a saver do, with the program around them, call by call.

`api` has the names, be it `tf.compat.v1.train` or `compat`. This module imports nothing of ours, so
that TensorFlow 1.15 alone can tell what the numbers have to be:

    python supervisor_rows.py > golden_supervisor_rows.json
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable

import numpy as np

# In a cluster a program has one session.
ALONE = [
    "tf.train.Supervisor.managed_session",
    "tf.train.Supervisor.prepare_or_wait_for_session",
    "tf.train.Supervisor.stop_on_exception",
]
SECTIONS = {
    "Supervisor": [
        "tf.train.Supervisor",
        *ALONE,
        "tf.train.Supervisor.init_fn",
        "tf.train.Supervisor.loop",
        "tf.train.Supervisor.request_stop",
        "tf.train.Supervisor.save_path",
        "tf.train.Supervisor.summary_computed",
        "tf.train.Supervisor.summary_writer",
    ],
    "Saver": [
        "tf.train.Saver",
        "tf.train.Saver(var_list)",
        "tf.train.Saver(max_to_keep)",
        "tf.train.Saver(keep_checkpoint_every_n_hours)",
        "tf.train.Saver(sharded)",
        "tf.train.latest_checkpoint",
    ],
}
DIFFERENCES = {
    "tf.train.Supervisor.init_fn": "legacy: as in TensorFlow, a worker may begin before it is run"
}


def build(tf1: Any) -> Any:
    """Each update halves the distance of a weight to 1; one more variable counts."""
    global_step = tf1.train.get_or_create_global_step()
    w = tf1.get_variable("w", initializer=np.float32(0))
    seen = tf1.get_variable("seen", initializer=np.float32(np.inf), trainable=False)
    loss = tf1.square(w - 1)
    with tf1.control_dependencies([loss]):
        least = seen.assign(tf1.minimum(seen, loss))
        train = tf1.train.GradientDescentOptimizer(0.25).minimize(loss, global_step=global_step)
    return {"loss": loss, "least": least, "train": train}


def observe(
    api: Any, tf1: Any, folder: str, device: Any = None, master: str = ""
) -> dict[str, list[float]]:
    """Trains under a supervisor and, alone, under more; returns what was seen, as numbers."""
    with tf1.device(device):
        values = build(tf1)
    (weight,) = tf1.trainable_variables()

    def run(session: Any) -> float:
        return float(session.run(values)["loss"])

    seen: dict[str, list[float]] = {name: [] for names in SECTIONS.values() for name in names}
    losses = seen["tf.train.Supervisor"]
    savers = {
        "": api.Saver(),
        "(var_list)": api.Saver({"w": weight}),
        "(max_to_keep)": api.Saver(max_to_keep=2),
        "(keep_checkpoint_every_n_hours)": api.Saver(
            max_to_keep=1, keep_checkpoint_every_n_hours=1e-12
        ),
        "(sharded)": api.Saver(sharded=True),
    }
    logdir = folder + "/first"
    arguments: Any = {"save_model_secs": 0, "summary_op": None, "saver": savers[""]}
    supervisor = api.Supervisor(
        logdir=logdir, init_fn=lambda session: weight.load(-1.0, session), **arguments
    )
    with supervisor.managed_session(master) as session:
        losses += [run(session) for _ in range(3)]
        seen["tf.train.Supervisor.init_fn"] = losses[:1]
        save(tf1, logdir, savers, session, lambda: run(session), weight, seen)
        prefix = supervisor.saver.save(session, supervisor.save_path, supervisor.global_step)
        seen["tf.train.Supervisor.save_path"].append(int(prefix[len(logdir + "/model.ckpt-") :]))
        summary = tf1.Summary(value=[tf1.Summary.Value(tag="mine", simple_value=0.5)])
        supervisor.summary_computed(session, summary)
        supervisor.SummaryComputed(session, summary, 7)
        times = seen["tf.train.Supervisor.loop"]

        def turn(first: float, step: float = 0.0) -> None:
            times.append(first + step + len(times))
            if len(times) == 3:
                supervisor.request_stop()

        supervisor.loop(None, turn, args=(1.0,), kwargs={"step": 0.5}).join()
        seen["tf.train.Supervisor.request_stop"] = [
            float(supervisor.should_stop()),
            float(supervisor.ShouldStop()),
            float(supervisor.coord.wait_for_stop(0)),
        ]
    read_events(tf1, logdir, seen)
    if not master:
        supervisor = api.Supervisor(logdir=folder + "/alone", **arguments)
        run_alone(supervisor, run, weight, seen)
    return seen


def save(
    tf1: Any,
    folder: str,
    savers: Any,
    session: Any,
    run: Callable[[], float],
    weight: Any,
    seen: Any,
) -> None:
    """Saves three times by each saver, with an update between; restores the first that is left."""
    for name, saver in savers.items():
        found, path = seen["tf.train.Saver" + name], f"{folder}/saver{len(name)}"
        listed = f"list{len(name)}"
        kept = [saver.save(session, path, k, latest_filename=listed) for k in (0, 1, 2) if run()]
        kept = [prefix for prefix in kept if tf1.train.checkpoint_exists(prefix)]
        found += [float(prefix.rpartition("-")[2]) for prefix in kept]
        found.append(len(saver.last_checkpoints))
        found.append(len(tf1.train.list_variables(kept[-1])))
        saver.restore(session, kept[0])
        found.append(float(session.run(weight)))
        newest = tf1.train.latest_checkpoint(folder, listed)
        seen["tf.train.latest_checkpoint"].append(float(newest.rpartition("-")[2]))
    savers["(var_list)"].restore(session, folder + "/saver0-1")  # Which has more variables.
    seen["tf.train.Saver(var_list)"].append(float(session.run(weight)))


def run_alone(supervisor: Any, run: Callable[[Any], float], weight: Any, seen: Any) -> None:
    """Opens one session after the other, the last of which a program ends by an error."""
    found = seen["tf.train.Supervisor.managed_session"]
    for _ in range(2):
        with supervisor.managed_session() as session:
            found += [run(session), run(session), float(session.run(supervisor.global_step))]
            supervisor.saver.save(session, supervisor.save_path, supervisor.global_step)
    with supervisor.PrepareSession() as session:
        found = seen["tf.train.Supervisor.prepare_or_wait_for_session"]
        found += [float(weight.eval()), run(session), float(weight.eval())]
    supervisor.Stop()
    found = seen["tf.train.Supervisor.stop_on_exception"]
    try:
        with supervisor.managed_session() as session:
            with supervisor.stop_on_exception():
                raise KeyError(run(session))
            found.append(float(supervisor.should_stop()))
    except KeyError as error:
        found.append(error.args[0])


def read_events(tf1: Any, folder: str, seen: dict[str, list[float]]) -> None:
    """Adds what the event file of a folder shows, and whether there is a graph beside it."""
    (file,) = Path(folder).glob("events.out.tfevents.*")
    found = seen["tf.train.Supervisor.summary_writer"]
    for event in tf1.train.summary_iterator(str(file)):
        kind = event.WhichOneof("what")
        if kind == "graph_def":
            found.append(float(len(event.graph_def) > 0))
        elif kind == "session_log":
            found.append(10.0 + event.session_log.status)
        for value in event.summary.value:
            if value.tag == "mine":
                seen["tf.train.Supervisor.summary_computed"] += [event.step, value.simple_value]
    found.append(float(b"GradientDescent" in (Path(folder) / "graph.pbtxt").read_bytes()))


def native() -> dict[str, list[float]]:
    """Returns what TensorFlow alone does: graph and session."""
    import tensorflow

    tf1 = tensorflow.compat.v1
    tf1.enable_resource_variables()  # Their reads have an order.
    with tf1.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
        return observe(tf1.train, tf1, folder)


if __name__ == "__main__":
    json.dump(native(), sys.stdout, indent=1)
