"""What a monitored session does in one process, and summaries of a step; cases of `supervision`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import compat
from compat import tf, tf1
from compat.runtime.interface import current_runtime

if TYPE_CHECKING:
    from tests.compat.programs.cases import Program, case, checkpoints, fresh, refusal, scalars
else:
    from cases import Program, case, checkpoints, fresh, refusal, scalars

ONE = np.float32(1)
NUMBER = [tf.TensorSpec([], tf.float32)]


class Summarizing(Program):
    """Also summarizes its costs, under another name; its evaluation too, which writes none."""

    def _cost(self, x: Any) -> Any:
        cost = super()._cost(x)
        tf1.summary.scalar("seen", cost)
        return cost


@case
def summaries_inside_a_step(logdir: Path) -> Any:
    """Of each call, of the first alone, and of one of several updates in a call."""
    seen = []
    for name, secs in (("each", 1e-9), ("first", 600.0)):
        fresh()
        Summarizing().supervised(3, logdir=str(logdir / name), save_summaries_secs=secs)
        seen.append(scalars(logdir / name))
    fresh()
    program = Summarizing()
    supervisor = compat.Supervisor(logdir=str(logdir / "many"), summary_op=program.train)
    with supervisor.managed_session() as session:
        session.run_many(program.train, np.ones(2, np.float32))
    return [*seen, [entry[1] for entry in scalars(logdir / "many")]]


def monitored(logdir: Path, hooks: Any = (), **arguments: Any) -> Any:
    return compat.MonitoredTrainingSession(checkpoint_dir=str(logdir), hooks=[*hooks], **arguments)


@case
def monitored_summary_of_one_step(logdir: Path) -> Any:
    """Of two that have summaries."""
    program = Summarizing()
    hook = compat.SummarySaverHook(
        save_steps=1, output_dir=str(logdir), summary_op=program.train.summary
    )
    with monitored(logdir, [hook], save_summaries_steps=None, save_checkpoint_secs=None) as session:
        for _ in range(2):
            session.run(program.train, ONE)
    return scalars(logdir)


@case
def monitored_two_steps(logdir: Path) -> Any:
    """Two networks of layers that have no names of their own, and their summaries."""
    compat.get_or_create_global_step()

    def network(x: Any) -> Any:
        with tf1.variable_scope(None, "dense"):
            kernel = tf1.get_variable("kernel", initializer=np.float32(1))
        with tf1.name_scope("layer"):
            bias = tf1.Variable(np.float32(2), name="bias")
            tf1.summary.scalar("bias", bias)
        loss = kernel * x + bias
        tf1.summary.scalar("loss", loss)
        step = tf1.train.get_global_step()
        return {"train": tf1.train.GradientDescentOptimizer(1.0).minimize(loss, step)}

    steps = [compat.step(network, [tf.TensorSpec([], tf.float32, name="x")]) for _ in range(2)]
    with monitored(logdir, save_summaries_steps=1) as session:
        for step in steps:
            session.run(step, feed_dict={"x": ONE})
    saved = [name for name, _ in tf1.train.list_variables(str(logdir))]
    return saved, [tag for _, tag, _ in scalars(logdir)]


@case
def monitored_resumes(logdir: Path) -> Any:
    """In a second session, and in another process."""
    seen = []
    for lasts in ((2, 3), (5,)):
        fresh()
        program = Program()
        for last in lasts:
            with monitored(logdir, [compat.StopAtStepHook(last_step=last)]) as session:
                while not session.should_stop():
                    seen.append(int(session.run(program.train, ONE)["global_step"]))
    return [seen, checkpoints(logdir)[-1]]


@case
def monitored_end_of_the_data(logdir: Path) -> Any:
    program = Summarizing()
    step = compat.step(
        program._train, [], dataset=lambda index, count: tf.data.Dataset.from_tensors(ONE).repeat(3)
    )
    final, logged = compat.FinalOpsHook(program.weight), []

    def noted(values: Any) -> str:
        logged.append(float(values["weight"]))
        return "noted"

    by_name = compat.LoggingTensorHook(["weight"], at_end=True, formatter=noted)
    summary = compat.SummarySaverHook(save_steps=2, output_dir=str(logdir), summary_op=step.summary)
    hooks = [final, by_name, summary]
    with monitored(logdir, hooks, save_summaries_steps=None) as session:
        while not session.should_stop():
            session.run(step)
    steps = [entry[0] for entry in scalars(logdir)]
    return [float(final.final_ops_values), logged, checkpoints(logdir), steps]


@case
def monitored_saves_by_steps(logdir: Path) -> Any:
    """How often a hook that saves at steps 0, 6 and 12 uses the session after a call."""
    program, uses = Program(), []

    class Context:
        def __init__(self, context: Any) -> None:
            self.context = context

        @property
        def session(self) -> Any:
            uses.append(self.context)
            return self.context.session

    class Saving(tf1.train.CheckpointSaverHook):  # type: ignore[misc]
        def after_run(self, run_context: Any, run_values: Any) -> None:
            super().after_run(Context(run_context), run_values)

    hook = Saving(str(logdir / "own"), save_steps=6)
    with monitored(logdir, [hook], save_checkpoint_secs=None) as session:
        for _ in range(12):
            session.run(program.train, ONE)
    return [len(uses), checkpoints(logdir / "own")]


@case
def monitored_error(logdir: Path) -> Any:
    """In the body, which ends no hook and saves nothing more; NaN, as TensorFlow raises it."""
    program = Program()
    final = compat.FinalOpsHook(program.weight)

    def fail() -> None:
        with monitored(logdir, [final]) as session:
            session.run(program.train, ONE)
            raise KeyError("mine")

    def diverge() -> None:
        hook = compat.NanTensorHook(program.train["cost"])
        with monitored(logdir / "nan", [hook], save_checkpoint_secs=None) as session:
            session.run(program.train, np.float32(np.nan))

    kind = tf1.train.NanLossDuringTrainingError
    return [
        refusal(fail, KeyError),
        final.final_ops_values,
        checkpoints(logdir),
        refusal(diverge, kind),
    ]


@case
def monitored_refusals(logdir: Path) -> Any:
    """What a step does not have, and what steps of the modern runtime refuse."""
    program = Program()
    seen = {"value": refusal(lambda: program.train["costs"])}

    class Own(tf1.train.SessionCreator):  # type: ignore[misc]
        def create_session(self) -> Any:
            return tf1.train.ChiefSessionCreator().create_session()

    with compat.MonitoredSession(Own()) as session:
        seen["creator"] = session.run(program.train, ONE)["cost"]
    if current_runtime().name == "modern":
        trace = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE)
        with monitored(logdir / "hooks") as session:
            seen["options"] = refusal(lambda: session.run(program.train, ONE, options=trace))
            both = [program.train["cost"], program.evaluate["cost"]]
            seen["two steps"] = refusal(lambda: session.run(both))
    return seen
