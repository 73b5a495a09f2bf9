"""What a supervisor writes and restores in one process; prints what was seen, by case."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import compat
from compat import tf1
from compat.runtime import interface

if TYPE_CHECKING:
    from tests.compat.programs.cases import Program, case, checkpoints, fresh, refusal, run, scalars
else:
    from cases import Program, case, checkpoints, fresh, refusal, run, scalars

ALWAYS = 1e-9  # Seconds between two summaries or checkpoints: at each training call.


@case
def summaries_of_each_step(logdir: Path) -> Any:
    program = Program()
    program.supervised(3, logdir=str(logdir), save_summaries_secs=ALWAYS, summary_op=program.train)
    return scalars(logdir)


@case
def summaries_by_default(logdir: Path) -> Any:
    Program().supervised(3, logdir=str(logdir), save_summaries_secs=ALWAYS)
    return scalars(logdir)


@case
def the_first_summary_only(logdir: Path) -> Any:
    Program().supervised(3, logdir=str(logdir), save_summaries_secs=600)
    return scalars(logdir)


@case
def no_summaries(logdir: Path) -> Any:
    arguments = {"logdir": str(logdir), "save_summaries_secs": ALWAYS}
    Program().supervised(3, summary_op=None, **arguments)
    written = scalars(logdir)
    fresh()
    Program().supervised(3, summary_writer=None, **{**arguments, "logdir": str(logdir / "none")})
    return written + [path.name for path in (logdir / "none").glob("events*")]


@case
def never_summaries(logdir: Path) -> Any:
    Program().supervised(3, logdir=str(logdir), save_summaries_secs=0)
    return scalars(logdir)


@case
def summaries_of_ones_own(logdir: Path) -> Any:
    program = Program()
    supervisor = compat.Supervisor(logdir=str(logdir), summary_op=None)
    proto = tf1.Summary(value=[tf1.Summary.Value(tag="proto", simple_value=2)])
    binary = tf1.Summary(value=[tf1.Summary.Value(tag="binary", simple_value=3)])
    with supervisor.managed_session() as session:
        session.run(program.train, np.float32(1))
        supervisor.summary_computed(session, {"dict": 1.0})
        supervisor.summary_computed(session, proto, global_step=20)
        supervisor.summary_computed(session, binary.SerializeToString(), 30)
        supervisor.summary_writer.add_summary(binary, 40)
    return scalars(logdir)


@case
def nowhere_to_write(logdir: Path) -> Any:
    program = Program()
    supervisor = compat.Supervisor(save_summaries_secs=ALWAYS, save_model_secs=ALWAYS)
    with supervisor.managed_session() as session:
        session.run(program.train, np.float32(1))
        said = [
            refusal(lambda: supervisor.summary_computed(session, {"dict": 1.0})),
            refusal(lambda: supervisor.save(session)),
        ]
    return said + [supervisor.summary_writer, supervisor.save_path]


@case
def not_the_chief(logdir: Path) -> Any:
    """Reads and writes nothing, though there is a checkpoint."""
    Program().supervised(1, logdir=str(logdir))
    fresh()
    Program()
    supervisor = compat.Supervisor(logdir=str(logdir), is_chief=False)
    return [supervisor.summary_writer, supervisor.recovery.recover()]


@case
def saves_at_each_call(logdir: Path) -> Any:
    Program().supervised(3, logdir=str(logdir), save_model_secs=ALWAYS, checkpoint_basename="net")
    return checkpoints(logdir)


@case
def saves_updates_in_a_branch(logdir: Path) -> Any:
    """Of a program that has switched TensorFlow 2's behavior off, its branches included."""
    were = tf1.control_flow_v2_enabled()
    tf1.disable_control_flow_v2()
    step = compat.get_or_create_global_step()
    weight = tf1.Variable(np.float32(0), name="weight")

    def build(x: Any) -> Any:
        def update() -> Any:
            with tf1.control_dependencies([weight.assign_add(x), step.assign_add(1)]):
                return tf1.constant(True)

        return {"done": tf1.cond(x > 0, update, lambda: tf1.constant(False))}

    train = compat.step(build, [tf1.TensorSpec([], tf1.float32)])
    with compat.Supervisor(logdir=str(logdir), save_model_secs=ALWAYS).managed_session() as session:
        seen = [bool(session.run(train, np.float32(x))["done"]) for x in (0, 1, 0, 2)]
        total = float(session.run(weight))
    if were:
        tf1.enable_control_flow_v2()
    return [seen, total, checkpoints(logdir)]


@case
def saves_at_the_end(logdir: Path) -> Any:
    Program().supervised(3, logdir=str(logdir))
    return checkpoints(logdir)


@case
def saves_when_asked(logdir: Path) -> Any:
    program = Program()
    supervisor = compat.Supervisor(logdir=str(logdir), save_model_secs=0)
    with supervisor.managed_session() as session:
        session.run(program.train, np.float32(1))
        prefix = supervisor.save(session)
    return [Path(prefix).name, checkpoints(logdir), Path(supervisor.save_path or "").name]


@case
def never_saves(logdir: Path) -> Any:
    Program().supervised(3, logdir=str(logdir), save_model_secs=0)
    return checkpoints(logdir)


@case
def without_a_saver(logdir: Path) -> Any:
    supervisor = Program().supervised(3, logdir=str(logdir), saver=None, save_model_secs=ALWAYS)
    return [checkpoints(logdir), supervisor.saver]


@case
def with_a_saver(logdir: Path) -> Any:
    program, saver = Program(), compat.Saver(max_to_keep=1)
    supervisor = program.supervised(3, logdir=str(logdir), saver=saver, save_model_secs=ALWAYS)
    return [checkpoints(logdir), supervisor.saver is saver]


@case
def init_fn(logdir: Path) -> Any:
    """Sets the weight of a new training, and leaves that of a resumed one alone.

    Be it resumed by another supervisor, or by a second session of the same one.
    """
    seen = []
    for _ in range(2):
        fresh()
        program = Program()

        def begin(session: Any, program: Program = program) -> None:
            session.assign({"weight": program.weight}, {"weight": np.float32(8)})

        supervisor = compat.Supervisor(logdir=str(logdir), init_fn=begin)
        for _ in range(2):
            with supervisor.managed_session() as session:
                seen.append(float(session.run(program.weight)))
                session.run(program.train, np.float32(0))
                seen.append(float(session.run(program.weight)))
    return seen


@case
def global_steps(logdir: Path) -> Any:
    """The one there is, and none."""
    program = Program()
    same = compat.Supervisor().global_step is program.global_step
    fresh()
    program = Program()
    none = compat.Supervisor(global_step=None)
    with none.managed_session() as session:
        session.run(program.train, np.float32(1))
        return [same, none.global_step, session.planned_step]


@case
def sync_optimizer(logdir: Path) -> Any:
    """What a coordinator refuses."""
    Program()
    if interface.current_runtime().name == "legacy":
        return None
    optimizer = tf1.train.SyncReplicasOptimizer(tf1.train.GradientDescentOptimizer(1.0), 1)
    return refusal(lambda: compat.Supervisor(sync_optimizer=optimizer))


if __name__ == "__main__":
    # More cases: loading TensorFlow again would take longer.
    import endings  # noqa: F401
    import monitoring  # noqa: F401
    import queues  # noqa: F401

    run()
