"""Programs as owners of TensorFlow 1.x code have them; the cases are run by `graphs.py`."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator

import numpy as np

import compat
from compat import tf, tf1

if TYPE_CHECKING:
    from tests.compat.programs.cases import case, checkpoints, fresh, refusal, scalars
    from tests.compat.programs.graphs import ALWAYS, Graph
else:
    from cases import case, checkpoints, fresh, refusal, scalars

    from __main__ import ALWAYS, Graph


def sessions(logdir: Path, count: int = 2, **arguments: Any) -> Iterator[Any]:
    """Yields graph and session of one run after another, each in a new process as it were."""
    for _ in range(count):
        fresh()
        graph = Graph()
        supervisor = compat.Supervisor(logdir=str(logdir), **arguments)
        with supervisor.managed_session() as session:
            yield graph, session


@case
def variables_that_share_an_initial_tensor(logdir: Path) -> Any:
    seen = []
    for _ in range(2):
        fresh()
        zeros = tf.zeros([2])
        both = {name: tf1.Variable(zeros, name=name) for name in "ab"}
        with compat.Supervisor(logdir=str(logdir)).managed_session() as session:
            seen += [session.run(both[name]).tolist() for name in "ab"]
            session.assign(both, {"a": np.float32([1, 1]), "b": np.float32([5, 5])})
            seen += [session.run(both[name]).tolist() for name in "ab"]
    return seen


@case
def initialised_by_the_program(logdir: Path) -> Any:
    """An `init_op` of one's own, then none and an `init_fn`, are not run after a restore."""
    seen = []

    def begin(session: Any) -> None:
        session.run(tf1.get_collection("begin"))

    for arguments in ("init_op", "init_op", "nothing", "init_fn"):
        if arguments == "init_fn":
            logdir = logdir / "other"
        fresh()
        graph = Graph()
        tf1.add_to_collection("begin", tf1.global_variables_initializer())
        supervisor = compat.Supervisor(
            logdir=str(logdir),
            init_op=tf1.get_collection("begin")[0] if arguments == "init_op" else None,
            init_fn=begin if arguments == "init_fn" else None,
        )
        with supervisor.managed_session() as session:
            before = float(session.run(graph.weight))
            session.run(graph.train, {graph.inputs: 8.0})
            seen.append([before, float(session.run(graph.weight)), session.planned_step])
    return seen


@case
def end_of_the_data(logdir: Path) -> Any:
    """Queue runners and a `tf.data` iterator that end are a clean end, which is saved."""
    source = tf1.train.input_producer(np.float32([1, 2, 3]), num_epochs=1, shuffle=False)
    graph = Graph(inputs=source.dequeue())
    steps = []
    with compat.Supervisor(logdir=str(logdir)).managed_session() as session:
        while True:
            session.run(graph.train)
            steps.append(int(session.run(graph.global_step)))
    return [steps, checkpoints(logdir)]


@case
def error_of_a_thread(logdir: Path) -> Any:
    """An error that the body has not seen: nothing more is saved."""
    graph = Graph()
    supervisor = compat.Supervisor(logdir=str(logdir))

    def fail() -> None:
        with supervisor.stop_on_exception():
            raise OSError("disk is full")

    def body() -> None:
        with supervisor.managed_session() as session:
            session.run(graph.train, {graph.inputs: 1.0})
            thread = threading.Thread(target=fail)
            thread.start()
            thread.join()

    return [refusal(body, OSError), checkpoints(logdir)]


@case
def error_of_the_body_after_that_of_a_thread(logdir: Path) -> Any:
    """As TensorFlow raises them: the thread's, in whose traceback that of the body is."""
    Graph()
    supervisor = compat.Supervisor()

    def fail() -> None:
        with supervisor.stop_on_exception():
            raise OSError("disk is full")

    def body() -> None:
        with supervisor.managed_session():
            thread = threading.Thread(target=fail)
            thread.start()
            thread.join()
            raise KeyError("the data that the thread did not read")

    try:
        body()
    except (OSError, KeyError) as error:
        return [repr(error), repr(error.__context__)]


@case
def last_work_of_a_thread(logdir: Path) -> Any:
    """It begins after the request to stop, in a session that is still open."""
    graph = Graph()
    supervisor = compat.Supervisor()
    found = []

    class Evaluation(tf1.train.LooperThread):
        def run_loop(self) -> None:
            """Does nothing while the program trains."""

        def stop_loop(self) -> None:
            time.sleep(0.5)
            found.append(int(session.run(graph.global_step)))

    with supervisor.managed_session() as session:
        Evaluation(supervisor.coord, 0.1).start()
        session.run(graph.train, {graph.inputs: 1.0})
    return found


@case
def error_of_exc_info(logdir: Path) -> Any:
    Graph()
    supervisor = compat.Supervisor()

    def body() -> None:
        with supervisor.managed_session():
            try:
                raise OSError("disk is full")
            except OSError:
                supervisor.request_stop(sys.exc_info())

    return refusal(body, OSError)


@case
def saver_of_tensorflow(logdir: Path) -> Any:
    seen = []
    for _ in range(2):
        fresh()
        graph = Graph()
        saver = tf1.train.Saver(max_to_keep=2)
        supervisor = compat.Supervisor(logdir=str(logdir), saver=saver)
        with supervisor.managed_session() as session:
            seen.append([float(session.run(graph.weight)), session.planned_step])
            session.run(graph.train, {graph.inputs: 8.0})
    return [seen, checkpoints(logdir)]


@case
def saver_of_ours_in_a_session_of_tensorflow(logdir: Path) -> Any:
    graph = Graph()
    saver = compat.Saver()
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        session.run(graph.train, {graph.inputs: 8.0})
        prefix = saver.save(session, str(logdir / "m"), global_step=graph.global_step)
        session.run(graph.train, {graph.inputs: 8.0})
        saver.restore(session, prefix)
        return [Path(prefix).name, float(session.run(graph.weight))]


@case
def without_a_global_step(logdir: Path) -> Any:
    """None is made, no worker waits for it, and there are summaries and checkpoints."""
    server = tf1.train.Server.create_local_server()
    weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
    tf1.summary.scalar("weight", weight)
    train = tf1.train.GradientDescentOptimizer(0.5).minimize(tf1.square(weight - 1))
    supervisor = compat.Supervisor(logdir=str(logdir), save_summaries_secs=ALWAYS)
    with supervisor.managed_session(server.target) as session:
        session.run(train)
        with tf1.Graph().as_default():
            other = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
            worker = compat.Supervisor(is_chief=False)
            opened = worker.prepare_or_wait_for_session(server.target, max_wait_secs=30)
            seen = [float(opened.run(other)), worker.global_step, session.planned_step]
    return [
        *seen,
        scalars(logdir),
        checkpoints(logdir),
        [v.op.name for v in tf1.global_variables()],
    ]


@case
def summary_that_a_call_cannot_feed(logdir: Path) -> Any:
    """The first summary is due, but not with what restores, initializes or feeds nothing."""
    for graph, session in sessions(logdir, 1):
        session.run(graph.train, {graph.inputs: 8.0})
    fresh()
    graph = Graph()
    tf1.summary.scalar("cost", graph.cost)
    count = graph.global_step.assign_add(1)
    initialize = tf1.global_variables_initializer()
    saver = tf1.train.Saver()

    def warm_start(session: Any) -> None:
        saver.restore(session, str(logdir / "model.ckpt-1"))

    supervisor = compat.Supervisor(
        logdir=str(logdir / "new"), init_fn=warm_start, save_summaries_secs=ALWAYS
    )
    with supervisor.managed_session() as session:
        begun = [session.planned_step, float(session.run(graph.weight))]
        saver.restore(session, str(logdir / "model.ckpt-1"))
        session.run(initialize)
        session.run(count)
        session.run(graph.train, {graph.inputs: 2.0})
    return [begun, scalars(logdir / "new")]


@case
def two_sessions(logdir: Path) -> Any:
    """The second session of a supervisor resumes, and has a file of its own."""
    graph = Graph()
    supervisor = compat.Supervisor(logdir=str(logdir))
    seen = []
    for _ in range(2):
        with supervisor.managed_session() as session:
            steps = 0
            while not supervisor.should_stop() and steps < 3:
                session.run(graph.train, {graph.inputs: 1.0})
                steps += 1
            seen.append([steps, session.planned_step, int(session.run(graph.global_step))])
    return seen


@case
def default_session(logdir: Path) -> Any:
    graph = Graph()
    supervisor = compat.Supervisor()
    with supervisor.prepare_or_wait_for_session() as session:
        graph.train.run({graph.inputs: 8.0})
        return [float(graph.weight.eval()), tf1.get_default_session() is session]


@case
def infinity(logdir: Path) -> Any:
    """In a variable that is not trained, such as the best loss so far."""
    seen = []
    for _ in range(2):
        fresh()
        best = tf1.Variable(np.float32(np.inf), trainable=False, name="best")
        weight = tf1.Variable(np.float32(np.nan), name="weight")
        compat.get_or_create_global_step()
        saver = compat.Saver([best])
        supervisor = compat.Supervisor(logdir=str(logdir), saver=saver)
        with supervisor.managed_session() as session:
            seen.append(float(session.run(best)) == np.inf and bool(session.run(weight) != 0))
    return [seen, checkpoints(logdir)]
