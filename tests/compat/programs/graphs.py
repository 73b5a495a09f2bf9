"""What programs of the TensorFlow 1.x kind do with graph and session; the legacy runtime only."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import compat
from compat import tf, tf1

if TYPE_CHECKING:
    from tests.compat.programs.cases import case, checkpoints, fresh, refusal, run, scalars
else:
    from cases import case, checkpoints, fresh, refusal, run, scalars

ALWAYS = 1e-9  # Seconds between two summaries: at each training call.


class Graph:
    """The graph of a program with placeholders: a weight that is trained to be its input."""

    def __init__(self, inputs: Any = None) -> None:
        global_step = tf1.train.get_or_create_global_step()
        weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
        self.inputs = tf1.placeholder(tf.float32, []) if inputs is None else inputs
        self.cost = tf1.square(weight - self.inputs)
        self.weight, self.global_step = weight, global_step
        optimizer = tf1.train.GradientDescentOptimizer(0.25)
        self.train = optimizer.minimize(self.cost, global_step=global_step)


@case
def summary_of_placeholders(logdir: Path) -> Any:
    """As the author of the example of 2016 wanted it: a summary that needs the feed."""
    graph = Graph()
    tf1.summary.scalar("cost", graph.cost)
    tf1.summary.scalar("input", graph.inputs)
    supervisor = compat.Supervisor(
        logdir=str(logdir), summary_op=tf1.summary.merge_all(), save_summaries_secs=ALWAYS
    )
    results = []
    with supervisor.managed_session() as session:
        for number in (1.0, 2.0, 3.0):
            feed = {graph.inputs: number}
            session.run(graph.cost, feed_dict={graph.inputs: 100.0})  # Evaluates; writes nothing.
            results.append(session.run([graph.train, graph.cost], feed_dict=feed)[1].tolist())
            session.run({"cost": graph.cost, "weight": graph.weight}, {graph.inputs: 100.0})
    return {"costs": results, "written": scalars(logdir)}


@case
def summaries_that_the_graph_collected(logdir: Path) -> Any:
    graph = Graph()
    tf1.summary.scalar("cost", graph.cost)
    supervisor = compat.Supervisor(logdir=str(logdir), save_summaries_secs=ALWAYS)
    with supervisor.managed_session() as session:
        session.run(graph.train, {graph.inputs: 2.0})
        session.run((graph.train, {"cost": graph.cost}), {graph.inputs: 2.0})
        session.run(graph.train.name, {graph.inputs: 2.0})
    return scalars(logdir)


@case
def elements_of_a_queue(logdir: Path) -> Any:
    """A training call takes one element, also when a summary of it is due."""
    queue = tf1.FIFOQueue(20, [tf.float32], shapes=[()])
    fill = queue.enqueue_many([np.arange(10, dtype=np.float32)])
    graph = Graph(inputs=queue.dequeue())
    size = queue.size()
    tf1.summary.scalar("input", graph.inputs)
    supervisor = compat.Supervisor(
        logdir=str(logdir), save_summaries_secs=ALWAYS, save_model_secs=ALWAYS
    )
    sizes = []
    with supervisor.managed_session() as session:
        session.run(fill)
        for _ in range(4):
            session.run(graph.train)
            sizes.append(int(session.run(size)))
    return {"sizes": sizes, "written": scalars(logdir)}


def updated_by(kind: str, weight: Any, step: Any) -> Any:
    """Returns what a program fetches that updates by an assignment, in a branch or in a loop."""

    def update(number: Any) -> Any:
        with tf.control_dependencies([weight.assign_sub(1.0), step.assign_add(1)]):
            return number + 1

    if kind == "branch":
        return tf1.cond(step >= 0, lambda: update(tf.constant(0)), lambda: tf.constant(0))
    if kind == "loop":
        return tf1.while_loop(lambda number: number < 1, update, [tf.constant(0)])
    with tf.control_dependencies([weight.assign_sub(1.0)]):
        return step.assign_add(1)


@case
def updates_of_other_kinds(logdir: Path) -> Any:
    """A thread averages the gradients of replicas."""
    saved = []
    for kind in ("assignment", "branch", "loop", "replicas"):
        fresh()
        step = compat.get_or_create_global_step()
        weight = tf1.get_variable("weight", initializer=4.0)
        sync = None
        if kind == "replicas":
            optimizer = tf1.train.GradientDescentOptimizer(0.1)
            sync = tf1.train.SyncReplicasOptimizer(optimizer, 1, total_num_replicas=1)
            train = sync.minimize(weight * weight, global_step=step)
        else:
            train = updated_by(kind, weight, step)
        arguments = {"logdir": str(logdir / kind), "save_model_secs": ALWAYS}
        supervisor = compat.Supervisor(sync_optimizer=sync, **arguments)
        with supervisor.managed_session() as session:
            for _ in range(2):
                session.run([train, step])
        saved.append(checkpoints(logdir / kind))
    return saved


@case
def queue_runners(logdir: Path) -> Any:
    """Are started with the session, and end with it."""
    source = tf1.train.input_producer(np.array([1, 2, 3], np.float32), shuffle=False)
    graph = Graph(inputs=source.dequeue())
    supervisor = compat.Supervisor()
    with supervisor.managed_session() as session:
        return [session.run([graph.inputs, graph.train])[0].tolist() for _ in range(5)]


@case
def operations_of_ones_own(logdir: Path) -> Any:
    """The arguments of a supervisor that only graphs have."""
    graph = Graph()
    start = tf1.placeholder(tf.float32, [])
    local = tf1.get_local_variable("local", [], initializer=tf1.zeros_initializer())
    supervisor = compat.Supervisor(
        graph=tf1.get_default_graph(),
        init_op=tf1.group(tf1.global_variables_initializer(), graph.weight.initializer),
        init_feed_dict={start: 1.0},
        local_init_op=tf1.group(tf1.local_variables_initializer(), local.initializer),
        ready_op=tf1.report_uninitialized_variables(),
    )
    with supervisor.managed_session() as session:
        return [float(session.run(graph.weight)), float(session.run(local))]


@case
def others_that_are_quicker(logdir: Path) -> Any:
    """Updates that come between the variables' first values and the chief's first call."""
    found = []
    for _ in range(2):
        fresh()
        graph = Graph()
        others = graph.global_step.assign_add(7)
        supervisor = compat.Supervisor(logdir=str(logdir), local_init_op=others.op)
        with supervisor.managed_session() as session:
            found.append([session.planned_step, int(session.run(graph.global_step))])
    return found


@case
def the_session_of_tensorflow(logdir: Path) -> Any:
    """Everything that it has is there, also where it is made in the block of a device."""
    graph = Graph()
    with tf1.device("/device:GPU:9"):
        supervisor = compat.Supervisor()
    with supervisor.prepare_or_wait_for_session() as session:
        partial = session.make_callable(graph.cost, [graph.inputs])
        return {
            "graph": session.graph is tf1.get_default_graph(),
            "callable": float(partial(3.0)),
            "by name": float(session.run("weight/Read/ReadVariableOp:0")),
            "variable by name": tf.nest.map_structure(float, session.run({"weight": ["weight:0"]})),
            "session": isinstance(session, tf1.Session),
        }


@case
def services_that_are_not_wanted(logdir: Path) -> Any:
    graph = Graph(inputs=tf1.constant(1.0))
    tf1.summary.scalar("cost", graph.cost)
    supervisor = compat.Supervisor(logdir=str(logdir), save_summaries_secs=ALWAYS)
    with supervisor.managed_session(start_standard_services=False) as session:
        session.run(graph.train)
    return [scalars(logdir), checkpoints(logdir)]


@case
def waits(logdir: Path) -> Any:
    """For a checkpoint that does not come, and for a chief."""
    Graph()
    supervisor = compat.Supervisor(logdir=str(logdir), recovery_wait_secs=0.1)
    missing = refusal(
        lambda: supervisor.prepare_or_wait_for_session(wait_for_checkpoint=True, max_wait_secs=0.3)
    )
    worker = compat.Supervisor(is_chief=False, recovery_wait_secs=0.1)
    late = refusal(
        lambda: worker.prepare_or_wait_for_session(max_wait_secs=0.3), tf1.errors.OpError
    )
    return [missing.replace(str(logdir), "FOLDER"), "not ready after waiting" in late]


@case
def threads(logdir: Path) -> Any:
    """Asynchronous actors train in one session, each call of which would record."""
    graph = Graph()
    tf1.summary.scalar("cost", graph.cost)
    supervisor = compat.Supervisor(
        logdir=str(logdir), save_summaries_secs=ALWAYS, save_model_secs=ALWAYS
    )
    with supervisor.managed_session() as session:

        def act() -> None:
            with supervisor.stop_on_exception():
                for _ in range(10):
                    session.run(graph.train, {graph.inputs: 1.0})

        actors = [threading.Thread(target=act) for _ in range(4)]
        for actor in actors:
            actor.start()
        supervisor.coord.join(actors)
        steps = int(session.run(graph.global_step))
    kept = supervisor.saver.last_checkpoints
    return [steps, len(scalars(logdir)), sorted(Path(p).name for p in kept) == checkpoints(logdir)]


@case
def files_of_tensorflow(logdir: Path) -> Any:
    """The graph and what the session logs, as TensorBoard and `freeze_graph` read them."""
    tf1.Variable(287, name="global_step", trainable=False)
    supervisor = compat.Supervisor(logdir=str(logdir))
    with supervisor.managed_session() as session:
        seen = [supervisor.ShouldStop(), supervisor.session_manager is not None]
        seen += [int(session.run(supervisor.global_step)), supervisor.init_op.type]
    (path,) = logdir.glob("events*")
    events = []
    for event in tf1.train.summary_iterator(str(path)):
        kind = event.WhichOneof("what")
        status = event.session_log.status
        tags = [value.tag for value in event.summary.value]
        name = tf1.SessionLog.SessionStatus.Name(status) if kind == "session_log" else ""
        events.append(" ".join([kind, name, *tags]).strip())
    graph_def = (logdir / "graph.pbtxt").read_text()
    return [seen, events, "global_step" in graph_def, checkpoints(logdir)]


@case
def device_filters(logdir: Path) -> Any:
    """Are set in a copy; a choice is kept, and so are the tasks and jobs that the graph names."""
    from compat.runtime.graphs.device_placement import filtered

    with tf1.device("/job:worker/task:1"):
        tf1.constant(1.0)
    own, chosen = tf1.ConfigProto(log_device_placement=True), tf1.ConfigProto()
    chosen.device_filters.extend(["/job:ps", "/job:worker"])
    graph, me = tf1.get_default_graph(), "/job:worker/task:0"
    seen = [list(filtered(config, me, graph).device_filters) for config in (own, chosen, None)]
    with tf1.Graph().as_default() as anywhere, tf1.device("/job:worker"):
        tf1.constant(1.0)
    tasks = (me, "/job:worker/task:2", "/job:master/task:0")
    seen += [list(filtered(None, task, anywhere).device_filters) for task in tasks]
    return [seen, list(own.device_filters), filtered(own, me, graph).log_device_placement]


if __name__ == "__main__":
    import owners  # noqa: F401  # More cases: loading TensorFlow again would take longer.

    run()
