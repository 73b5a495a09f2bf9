"""Where variables go with three parameter servers, which are part of this process.

Prints the task of each variable, by case, and the costs of two updates of functions of the
TensorFlow 1.x kind.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

import compat
from compat import tf, tf1
from compat.cluster import ports
from compat.cluster.liveness import identity
from compat.cluster.spec import Task
from compat.runtime.device_setter import stored_bytes
from compat.runtime.interface import current_runtime

if TYPE_CHECKING:
    from tests.compat.programs.cases import refusal
else:
    from cases import refusal

NUM_PS = 3
SHAPES = {"a": [4, 4], "b": [2], "c": [8, 8], "d": [2], "e": [3]}


def task(variable: Any) -> str:
    """Returns "ps 0" for "/job:ps/replica:0/task:0/device:CPU:0"."""
    found = re.search(r"/job:(\w+)(?:/replica:\d+)?(?:/task:(\d+))?", variable.device)
    return " ".join(filter(None, found.groups())) if found else variable.device


def variables_of(case: str) -> dict[str, str]:
    """Returns the tasks of the variables made in the name scope `case`."""
    return {
        name[len(case) + 1 :]: task(variable)
        for name, variable in current_runtime().variables().items()
        if name.startswith(case + "/")
    }


def make(**shapes: list[int]) -> list[Any]:
    return [tf.Variable(np.ones(s, np.float32), name=n) for n, s in shapes.items()]


def placed(case: str, setter: Any, body: Callable[[], Any] = lambda: make(**SHAPES)) -> Any:
    with tf1.variable_scope(case), compat.device(setter):
        body()
    return variables_of(case)


def nested() -> None:
    make(first=[2])
    with compat.device("/job:ps/task:1"):
        make(second=[2])
    make(third=[2], fourth=[2])


def with_slots(optimizer: Any) -> Callable[[], Any]:
    """Returns a function that makes variables and an update of them, lifted or not."""

    def build() -> compat.Step:
        model = make(a=[4], b=[4], c=[4])

        def update(x: Any) -> Any:
            with tf.GradientTape() as tape:
                cost = tf.add_n([tf.reduce_sum(x * v * v) for v in model])
            gradients = tape.gradient(cost, model)
            return {"cost": cost, "train": optimizer.apply_gradients(zip(gradients, model))}

        return compat.step(update, [tf.TensorSpec([], tf.float32)])

    return build


def embedding(ids: Any) -> Any:
    """As in 2016: a table in two pieces, looked up."""
    table = tf1.get_variable(
        "table",
        [6, 4],
        initializer=tf1.ones_initializer(),
        partitioner=tf1.fixed_size_partitioner(2),
    )
    rows = tf1.nn.embedding_lookup(table, ids, partition_strategy="div")
    cost = tf1.reduce_mean(tf1.square(rows))
    train = tf1.train.GradientDescentOptimizer(1.0).minimize(cost)
    return {"cost": cost, "train": train}


def drawn(x: Any) -> Any:
    """As in the example of 2016: variables that start as a random tensor."""
    weights = tf1.Variable(tf1.random_normal([200, 50], seed=3), name="weights")
    bias = tf1.Variable(tf1.zeros([50]), name="bias")
    cost = tf1.reduce_mean(tf1.square(tf1.matmul(x, weights) + bias))
    train = tf1.train.GradientDescentOptimizer(0.1).minimize(cost)
    return {"cost": cost, "stddev": tf1.math.reduce_std(weights), "train": train}


def explicit(x: Any) -> Any:
    """As in TensorFlow's guide of 2016: tasks by name, without a setter."""
    with tf1.device("/job:ps/task:2"):
        weights = tf1.Variable(tf1.ones([200, 1]), name="weights")
    with tf1.device("/job:worker/task:0"):
        cost = tf1.reduce_mean(tf1.square(tf1.matmul(x, weights)))
        train = tf1.train.GradientDescentOptimizer(0.001).minimize(cost)
    return {"cost": cost, "train": train}


def shared(x: Any) -> Any:
    """A model that training and evaluation both build, on the same variables."""
    with tf1.variable_scope("net", reuse=tf1.AUTO_REUSE):
        weights = tf1.get_variable("weights", [3], initializer=tf1.ones_initializer())
    return tf1.reduce_sum(weights * x)


def train_shared(x: Any) -> Any:
    cost = shared(x)
    return {"cost": cost, "train": tf1.train.GradientDescentOptimizer(0.5).minimize(cost)}


def names() -> compat.Step:
    """Makes variables of one name, in and out of a function, and of none."""
    make(w=[2]), make(w=[2])
    tf.Variable(1.0)

    def build(x: Any) -> Any:
        return {"sum": tf.reduce_sum(x * tf1.Variable([1.0, 2.0], name="w"))}

    return compat.step(build, [tf.TensorSpec([], tf.float32)])


def sizes() -> dict[str, Any]:
    """Returns what `byte_size_load_fn` says of operations of all kinds."""
    with tf1.Graph().as_default():
        matrix = tf1.get_variable("matrix", [3, 4], tf.float64)
        tf1.placeholder(tf.float32, [None], name="input")
        open_ended = tf1.raw_ops.VarHandleOp(dtype=tf.float32, shape=[None, 2], name="open")
        sums = tf1.raw_ops.ResourceConditionalAccumulator(dtype=tf.float32, shape=[2], name="sums")
        graph = tf1.get_default_graph()
        return {
            "accumulator": compat.byte_size_load_fn(sums.op),
            "matrix": compat.byte_size_load_fn(matrix.handle.op),
            "input": refusal(
                lambda: compat.byte_size_load_fn(graph.get_operation_by_name("input")), ValueError
            ),
            "open": refusal(lambda: compat.byte_size_load_fn(open_ended.op), ValueError),
        }


def main(runtime: str) -> None:
    held = [ports.reserve() for _ in range(NUM_PS + 1)]
    ps, worker = [r.address for r in held[:NUM_PS]], held[-1].address
    cluster = {"ps": ps, "worker": [worker]}
    for reservation in held:
        reservation.share()
    served = [tf1.train.Server(cluster, job_name="ps", task_index=index) for index in range(NUM_PS)]
    for index, ps_server in enumerate(served):  # They are no servers of ours.
        training = identity.fingerprint(compat.ClusterSpec(cluster), "")
        identity.declare(ps_server.target, Task("ps", index), training)
    server = compat.Server(cluster, "worker", 0, runtime=runtime)
    for reservation in held:
        reservation.release()

    def setter(**arguments: Any) -> Any:
        return compat.replica_device_setter(worker_device="/job:worker/task:0", **arguments)

    report: dict[str, Any] = {}
    number = [tf.TensorSpec([], tf.float32)]
    if runtime == "modern":
        outside = tf.Variable(1.0, name="outside")
        report["outside"] = [refusal(compat.get_or_create_global_step)]
        with compat.device(setter(cluster=cluster)):
            report["outside"].append(refusal(lambda: compat.step(lambda x: {"x": outside}, number)))
    report.update(
        round_robin=placed("round_robin", setter(cluster=cluster)),
        greedy=placed(
            "greedy",
            setter(
                cluster=cluster,
                ps_strategy=compat.GreedyLoadBalancingStrategy(NUM_PS, compat.byte_size_load_fn),
            ),
        ),
        random=placed(
            "random", setter(cluster=cluster, ps_strategy=compat.RandomStrategy(NUM_PS, seed=5))
        ),
        two_tasks=placed("two_tasks", setter(ps_tasks=2)),
        one_device=placed("one_device", setter(ps_tasks=1, ps_device="/job:ps/task:2")),
        no_ps_ops=placed("no_ps_ops", setter(cluster=cluster, ps_ops=[])),
        other_ps_ops=placed("other_ps_ops", setter(cluster=cluster, ps_ops=["VariableV2"])),
        own_spec=placed("own_spec", setter(cluster=compat.ClusterSpec(cluster))),
        tensorflows_spec=placed("tensorflows_spec", setter(cluster=server_spec(cluster))),
        nested=placed("nested", setter(cluster=cluster), nested),
        by_name=placed("by_name", "/job:ps/task:2"),
        momentum=placed(
            "momentum", setter(cluster=cluster), with_slots(tf1.train.MomentumOptimizer(0.1, 0.9))
        ),
        adam=placed("adam", setter(cluster=cluster), with_slots(tf1.train.AdamOptimizer(0.1))),
    )
    report["sizes"] = sizes()
    known = current_runtime().variables().items()
    greedy = [variable for name, variable in known if name.startswith("greedy/")]
    report["stored"] = stored_bytes(greedy, NUM_PS)
    report["names"] = placed("names", "/job:ps/task:0", names)
    with tf1.variable_scope("shared"), compat.device(setter(cluster=cluster)):
        spec = [tf.TensorSpec([3], tf.float32)]
        improve = compat.step(train_shared, spec)
        evaluate = compat.step(lambda x: {"cost": shared(x)}, spec, on_coordinator=True)
    report["shared"] = variables_of("shared")
    steps = {}
    for function, spec in (
        (embedding, tf.TensorSpec([None], tf.int32)),
        (drawn, tf.TensorSpec([2, 200], tf.float32)),
        (explicit, tf.TensorSpec([2, 200], tf.float32)),
    ):
        case = function.__name__
        with tf1.variable_scope(case), compat.device(setter(cluster=cluster)):
            steps[case] = compat.step(function, [spec])
        report[case] = variables_of(case)
    with compat.Supervisor().managed_session(server.target) as session:
        ones = np.ones([2, 200], np.float32)
        batches = {"embedding": np.array([0, 5, 2], np.int32), "drawn": ones, "explicit": ones}
        for case, train in steps.items():
            values = [session.run(train, batches[case]) for _ in range(2)]
            values += list(session.drain())
            report[case + "_values"] = values[-2:]
        x = np.ones(3, np.float32)
        session.run(improve, x)
        list(session.drain())
        report["shared_values"] = session.run(evaluate, x)
    del served
    print(json.dumps(report))


def server_spec(cluster: Any) -> Any:
    return tf1.train.ClusterSpec(cluster)


if __name__ == "__main__":
    main(json.loads(sys.argv[1])["runtime"])
