"""What a runtime and its sessions do in one process; prints what was seen, by case."""

from __future__ import annotations

import json
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

import compat
from compat import tf, tf1
from compat.runtime import interface as runtimes
from compat.runtime.session import Interrupted

if TYPE_CHECKING:
    from tests.compat.programs.cases import fresh, refusal
else:
    from cases import fresh, refusal

VECTOR = [tf.TensorSpec([2], tf.float32)]


def choices(name: str) -> dict[str, Any]:
    """Chooses the runtime, and tries what cannot be chosen besides."""
    chosen = compat.select_runtime(name)
    other = {"legacy": "modern", "modern": "legacy"}[name]
    return {
        "same": compat.select_runtime(name) is chosen,
        "auto": compat.select_runtime().name,
        "other": refusal(lambda: compat.select_runtime(other)),
        "unknown": refusal(lambda: compat.select_runtime("turbo")),
        "server": refusal(lambda: compat.Server({"ps": ["h:1"], "worker": ["h:2"]}, runtime=other)),
        "network": refusal(
            lambda: compat.Server({"ps": ["127.0.0.1:1"], "worker": ["0.0.0.0:1"]}, "ps", 0)
        ),
        "eager": tf.executing_eagerly(),
    }


def bad_steps() -> dict[str, str]:
    """Returns what is said of functions that are no steps."""
    functions: dict[str, Callable[[Any], Any]] = {
        "list": lambda x: [tf.reduce_sum(x)],
        "object": lambda x: {"cost": object()},
        "nothing": lambda x: {},
        "none": lambda x: {"cost": None},
    }
    # Nothing adds the global step, which would be a value.
    return {
        case: refusal(lambda function=function: compat.step(function, VECTOR))  # type: ignore[misc]
        for case, function in functions.items()
    }


def main(name: str) -> None:
    report: dict[str, Any] = {"choices": choices(name), "bad_steps": bad_steps()}
    with compat.device(None):
        global_step = compat.get_or_create_global_step()
        total = tf.Variable(np.zeros(2, np.float32), name="total")
        large = tf.Variable(np.int64(2**53 - 1), name="large", trainable=False)

        def add(weights: Any, x: Any) -> Any:
            """Adds to `total`, after looking at it."""
            seen = tf.reduce_sum(total.read_value())
            with tf.control_dependencies([seen]):
                done = [total.assign_add(weights * x), global_step.assign_add(1)]
            return {
                "seen": seen,
                "large": large.read_value(),
                "left_out": None,
                "added": tf.group(*[getattr(update, "op", update) for update in done]),
            }

        train = compat.step(add, VECTOR, per_worker_data=[np.array([1, 10], np.float32)])
        look = compat.step(lambda: {"sum": tf.reduce_sum(total)}, [], on_coordinator=True)
    report["names"] = [train.names, look.names]
    report["nodes"] = [len(graph_nodes(step)) > 0 for step in (train, look)]
    report["global_step"] = [
        compat.get_or_create_global_step() is global_step,
        global_step.dtype.name,
        global_step.shape.as_list(),
        sorted(runtimes.current_runtime().variables()),
    ]
    ones = np.ones(2, np.float32)
    with compat.Supervisor().managed_session() as session:
        report["planned"] = [session.planned_step]
        report["first"] = session.run(train, ones)
        report["planned"].append(session.planned_step)
        report["many"] = session.run_many(train, np.stack([ones, 2 * ones, 3 * ones]))
        report["planned"].append(session.planned_step)
        report["look"] = [session.run(look), session.run_many(look)]
        report["drained"] = list(session.drain())
        report["read"] = {k: v.tolist() for k, v in session.read({"t": total}).items()}
        report["fetched"] = [
            session.run(total).tolist(),
            [value.tolist() for value in session.run([total, global_step])],
            session.run({"t": total})["t"].tolist(),
        ]
        session.assign({"t": total}, {"t": np.array([5, 6], np.float32)})
        report["assigned"] = session.run(total).tolist()
        report["too_few"] = refusal(lambda: session.run(train))
        report["shape"] = refusal(lambda: session.run_many(train, np.zeros([4, 2, 3])))
        report["too_many"] = refusal(lambda: session.run_many(train, [ones], [ones]))
        report["no_rows"] = [session.run_many(look, count=0), int(session.run(global_step))]
        report["uneven"] = [
            refusal(lambda: session.run_many(train, [ones, ones], count=3)),
            refusal(lambda: session.run_many(train, [ones, ones], count=1)),
            refusal(lambda: session.run_many(train, [ones], [ones, ones])),
        ]
        report["threads"] = shared_by_threads(session, train, global_step)
        report["feed_dict"] = refusal(lambda: session.run(train, feed_dict={"x": 1}))
    report["of_any_shape"] = of_any_shape()
    report["seeded"] = seeded()
    report["in_one_call"] = {kind: in_one_call(kind) for kind in ("function", "tape", "dropout")}
    report["interrupted"] = interrupted() if name == "modern" else None
    report["looks_while_training"] = looks_while_training()
    report["calls_while_building"] = calls_while_building()
    print(json.dumps(report))


def shared_by_threads(session: Any, train: compat.Step, global_step: Any) -> list[Any]:
    """Returns what four threads have seen that train at the same time, and how many updates."""
    before, seen = int(session.run(global_step)), []

    def act() -> None:
        for _ in range(10):
            seen.append(session.run(train, np.ones(2, np.float32))["global_step"])

    actors = [threading.Thread(target=act) for _ in range(4)]
    for actor in actors:
        actor.start()
    for actor in actors:
        actor.join(60)
    steps = [int(step) - before for step in seen]
    return [len(steps), max(steps), int(session.run(global_step)) - before]


def looks_while_training() -> list[Any]:
    """A call that trains ends only when another thread has looked at the model meanwhile."""
    fresh()
    trains, looked = threading.Event(), threading.Event()

    def wait() -> Any:
        trains.set()
        return np.bool_(looked.wait(20))

    def train() -> Any:
        in_time = tf.numpy_function(wait, [], tf.bool)
        in_time.set_shape([])
        return {"in_time": in_time, "train": step.assign_add(1)}

    with compat.device(None):
        step = compat.get_or_create_global_step()
        training = compat.step(train, [])
        look = compat.step(lambda: {"step": step.read_value()}, [], on_coordinator=True)
    found: dict[str, Any] = {}
    with compat.Supervisor().managed_session() as session:
        thread = threading.Thread(target=lambda: found.update(session.run(training)))
        thread.start()
        begun = trains.wait(20)
        session.run(look)
        looked.set()
        thread.join(30)
    return [begun, found["in_time"]]


def calls_while_building() -> list[str]:
    """Threads run calls while the program adds operations; returns what they raise."""
    tf1.reset_default_graph()
    raised, is_built = [], threading.Event()
    with tf1.Session() as session:
        five = tf1.constant(5.0)

        def call() -> None:
            try:
                while not is_built.wait(0.001):
                    session.run(five)
            except Exception as error:
                raised.append(repr(error))

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for number in range(300):
            total = tf1.get_variable(f"total{number}", initializer=0.0)
            tf1.assign_add(total, 1.0)
        is_built.set()
        for thread in threads:
            thread.join()
    return raised


def seeded() -> dict[str, Any]:
    """Weights of two steps, each drawn by the operation's seed or by the program's."""

    def draw(name: str) -> compat.Step:
        def drawn() -> Any:
            normal = tf1.random_normal_initializer(seed=3)
            own = tf1.get_variable(name, [2], initializer=normal)
            return {"own": own.read_value(), "all": tf1.Variable(tf1.random_normal([2]))}

        return compat.step(drawn, [])

    fresh()
    tf1.set_random_seed(7)
    with compat.device(None):
        steps = [draw("first"), draw("second")]
    with compat.Supervisor().managed_session() as session:
        values = [session.run(step) for step in steps]
    tf1.set_random_seed(None)
    return {name: [value[name].tolist() for value in values] for name in ("own", "all")}


def in_one_call(kind: str) -> dict[str, Any]:
    """What 157 updates make of a line's slope, one by one and by `run_many`, and by how many.

    On the legacy runtime the first 100 are made one by one. On the modern one 20 calls of each size
    are measured before a larger one is built, which always pays in a run that has no end.
    """
    batches = np.random.RandomState(1).standard_normal((157, 8)).astype(np.float32)
    found: dict[str, Any] = {"updates_in_a_call": 1}
    built: list[int] = []
    for how in ("one", "many"):
        fresh()
        with compat.device(None):
            step = compat.step(
                slope(kind), [tf.TensorSpec([8], tf.float32)], per_worker_data=[np.float32([3])]
            )
        with compat.Supervisor().managed_session() as session:
            if how == "many":
                built.clear()
                session.last_step, session.on_build = 10**9, lambda size, _: built.append(size)
                values = session.run_many(step, batches)
                if hasattr(session, "_loop"):
                    loop = session._loop(step)
                    found["traced"] = loop.function(5).experimental_get_tracing_count()
                    found["updates_in_a_call"] = built
                elif step.chain([batches]):
                    found["updates_in_a_call"] = step.chain([batches]).size(57)
            else:
                for batch in batches:
                    values = session.run(step, batch)
            read = session.read(runtimes.current_runtime().variables())
            found[how] = [values, {name: value.tolist() for name, value in sorted(read.items())}]
    return found


def interrupted() -> list[Any]:
    """The steps before and after a call that is given up while it is built, and after the next."""
    batches = np.ones((50, 8), np.float32)
    fresh()
    with compat.device(None):
        step = compat.step(
            slope("tape"), [tf.TensorSpec([8], tf.float32)], per_worker_data=[np.float32([3])]
        )
    asked: list[int] = []
    with compat.Supervisor().managed_session() as session:
        session.last_step = 10**9
        seen = [session.run_many(step, batches)["global_step"] for _ in range(3)]
        session.is_overdue = lambda: bool(asked.append(1)) or len(asked) > 7
        try:
            session.run_many(step, batches)
        except Interrupted:
            seen.append(int(session.run(compat.get_or_create_global_step())))
        session.is_overdue = None
        seen.append(session.run_many(step, batches)["global_step"])
    return [len(asked) > 7, *seen[2:]]


def slope(kind: str) -> Callable[..., Any]:
    """Returns a step's function, which makes the variables of its model itself, or is given one."""
    global_step = compat.get_or_create_global_step()
    module = tf.Module()
    if kind == "tape":
        module.slope = tf.Variable([0.5], name="slope")
    optimizer = tf1.train.MomentumOptimizer(0.01, 0.9)

    def function(scale: Any, x: Any) -> dict[str, Any]:
        variable = module.slope if kind == "tape" else tf1.get_variable("slope", initializer=[0.5])
        with tf.GradientTape() as tape:
            shown = tf1.nn.dropout(x, rate=0.5, seed=4) if kind == "dropout" else x
            cost = tf.reduce_mean(tf.square(variable * shown - scale * x))
        if kind != "tape":
            return {"cost": cost, "train": optimizer.minimize(cost, global_step=global_step)}
        pairs = [(tape.gradient(cost, variable), variable)]
        return {"cost": cost, "train": optimizer.apply_gradients(pairs, global_step=global_step)}

    return function


def of_any_shape() -> dict[str, Any]:
    """What is returned of other shapes and kinds, by a step that takes elements of a dataset."""

    def data(worker: int, workers: int) -> Any:
        numbers = tf.data.Dataset.range(4).map(
            lambda i: {
                "dense": tf.cast(i, tf.float32),
                "sparse": tf.sparse.SparseTensor([[0, 2]], [i + 1], [1, 3]),
                "ragged": tf.RaggedTensor.from_row_lengths([i, i + 1, i], [1, 2]),
            }
        )
        return numbers.shard(workers, worker)

    fresh()
    with compat.device(None):
        counter = tf.Variable(np.int64(0), name="counter", trainable=False)

        def function(element: Any, scale: Any, x: Any) -> Any:
            counted = counter.assign_add(tf.cast(element["dense"] * 0.0 + 1.0, tf.int64))
            counter.assign_add(100)  # Not returned, so not run.
            return {
                "rate": 0.5,
                "sum": element["dense"] + scale[0] * x,
                "dense": tf.sparse.to_dense(element["sparse"]),
                "rows": element["ragged"].to_tensor(),
                "text": tf.constant(["a", "b"]),
                "flag": x > 0.0,
                "counted": getattr(counted, "op", counted),
            }

        step = compat.step(
            function,
            [tf.TensorSpec([], tf.float32)],
            per_worker_data=[np.float32([10.0])],
            dataset=data,
        )
    seen: dict[str, Any] = {"sums": []}
    with compat.Supervisor().managed_session() as session:
        seen["nothing"] = session.run_many(step, np.zeros([0], np.float32))
        for _ in range(2):
            while True:
                try:
                    values = session.run(step, np.float32(2))
                except tf1.errors.OutOfRangeError:
                    break
                seen["sums"].append(values["sum"])
            session.restart(step)
        seen["kinds"] = {k: [type(v).__name__, getattr(v, "shape", 0)] for k, v in values.items()}
        seen["last"] = [values["rate"], values["flag"], values["dense"].tolist()]
        seen["last"] += [values["rows"].tolist(), [t.decode() for t in values["text"].tolist()]]
        seen["counter"] = int(session.run(counter))
        while True:
            session.run(step, np.float32(2))  # Until the end, which ends the session.
    return seen


def graph_nodes(step: compat.Step) -> Any:
    return tf1.GraphDef.FromString(step.graph_def()).node


if __name__ == "__main__":
    main(json.loads(sys.argv[1])["runtime"])
