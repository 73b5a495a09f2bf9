"""Makes each worker of the modern runtime read the dataset that its own program creates.

Programs shard their input by their task in TF_CONFIG. The chief creates the datasets of all
workers, but its own TF_CONFIG names the chief. So each worker stores the dataset of its input
function on its server, from which the chief reads it. The chief has a shard as well but runs no
steps, so the workers divide that shard among themselves.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from typing import Any, Callable, Iterator

from compat._tensorflow import tf, tf1
from compat.cluster.liveness import key_value
from compat.cluster.liveness.monitor import Monitor
from compat.cluster.spec import Task
from compat.errors import PeerError, UserError
from compat.estimator.lifted_inputs import Inputs
from compat.runtime.graphs.session import eagerly
from compat.server import Server

_KEY = "compat_estimator_input"
_GRAPH_KEY = "compat_estimator_input_graph"
_MOST_BYTES = 1 << 28  # The limit of a message is 2 GB, and memory holds several copies of it.
_IGNORE = 1  # The policy for the state of iterators: the dataset has none.
_REMEDY = (
    "so that a part of the data would not be read; read all of the data in each task, or use "
    "compat.select_runtime('legacy')"
)


def publish(server: Server, inputs: Inputs) -> None:
    """Stores the dataset of this worker's input function on the worker's own server."""
    entry = {"digest": digest(inputs.graph), "spec": "", "reason": ""}
    if inputs.dataset is not None:
        try:
            with eagerly():
                dataset = inputs.dataset(0, 1)
                entry["spec"] = str(dataset.element_spec)
                graph = _graph_of(dataset)
            key_value.write(server.target, server.task, _GRAPH_KEY, graph)
        except (tf1.errors.OpError, ValueError) as error:
            entry["reason"] = str(error).partition("\n")[0]
    key_value.write(server.target, server.task, _KEY, json.dumps(entry))


def _graph_of(dataset: Any) -> str:
    graph = tf.raw_ops.DatasetToGraphV2(
        input_dataset=tf.data.experimental.to_variant(dataset),
        external_state_policy=_IGNORE,
        strip_device_assignment=True,
    ).numpy()
    if len(graph) > _MOST_BYTES:
        raise ValueError(f"it holds {len(graph) >> 20} MiB of arrays, at most {_MOST_BYTES >> 20}")
    return base64.b64encode(graph).decode()


def of_workers(server: Server, inputs: Inputs) -> Callable[[int, int], Any] | None:
    """Returns the argument `dataset` of the chief's step, which creates the dataset of a worker.

    Returns None if the input is the same on all tasks and is no dataset.

    Raises:
      UserError: The input of a worker differs from the chief's, whose steps cannot read it.
      PeerError: A worker has not stored its dataset in time.
    """
    workers = [Task("worker", index) for index in server.cluster.task_indices("worker")]
    entries = _entries(server, workers)
    chiefs_digest, make = digest(inputs.graph), inputs.dataset
    others = [task for task in workers if entries[task]["digest"] != chiefs_digest]
    if not others:
        return make  # The dataset does not depend on the task.
    if make is None:
        raise UserError(
            f"input_fn returns other tensors in {others[0].name} than in the chief, whose alone "
            f"the modern runtime uses, {_REMEDY}, or return a tf.data.Dataset"
        )
    with eagerly():
        spec = str(make(0, len(workers)).element_spec)
    for task in others:
        reason = entries[task]["reason"]
        if entries[task]["spec"] != spec:
            reason = f"its elements are {entries[task]['spec']}, and in the chief {spec}"
        if reason:
            raise UserError(
                f"the dataset of input_fn in {task.name} is another one than in the chief and "
                f"cannot be read by steps of the chief ({reason}), {_REMEDY}"
            )

    @functools.lru_cache(maxsize=None)  # A worker that restarts needs it again.
    def graph_of(task: Task) -> bytes:
        text = key_value.read(f"grpc://{server.cluster.address_of(task)}", task, _GRAPH_KEY)
        return base64.b64decode(text or "")

    def dataset(index: int, count: int) -> Any:
        chiefs, task = make(index, count), workers[index]
        if task not in others:
            return chiefs
        variant = tf.raw_ops.DatasetFromGraph(graph_def=tf.constant(graph_of(task)))
        workers_dataset = tf.data.experimental.from_variant(variant, chiefs.element_spec)
        if len(others) < len(workers):
            return workers_dataset  # Another worker reads the chief's shard.
        turns = tf.data.Dataset.from_tensor_slices(tf.constant([0] * count + [1], tf.int64))
        shared = [workers_dataset, chiefs.shard(count, index)]
        return tf.data.experimental.choose_from_datasets(shared, turns.repeat())

    return dataset


def _entries(server: Server, workers: list[Task]) -> dict[Task, dict[str, str]]:
    """Returns what each worker has stored about its input; waits until all have stored it."""
    entries: dict[Task, dict[str, str]] = {}

    def check(task: Task) -> str | None:
        try:
            text = key_value.read(f"grpc://{server.cluster.address_of(task)}", task, _KEY)
        except (PeerError, tf1.errors.OpError):
            return "no answer"
        if text is None:
            return "no input yet"
        entries[task] = json.loads(text)
        return None

    checks = {server.cluster.describe(task): functools.partial(check, task) for task in workers}
    Monitor(checks, server.rendezvous_timeout).wait()
    return entries


def digest(graph: Any) -> str:  # noqa: C901
    """Returns a digest that is equal for graphs that two programs build alike.

    It ignores the names of functions, which contain a count of all functions of the process.
    """
    definition = graph.as_graph_def()
    functions = {each.signature.name: each for each in definition.library.function}
    numbers: dict[str, int] = {}  # Numbers of functions, in the order in which they are used.
    total = hashlib.sha256()

    def parts(nodes: Any) -> Iterator[bytes]:
        for node in nodes:
            yield from (node.name.encode(), number(node.op), *(i.encode() for i in node.input))
            for name in sorted(node.attr):
                if name[0] != "_":  # Private attributes of the runtime, which may have counts.
                    yield name.encode()
                    yield from values(node.attr[name])

    def values(value: Any) -> Iterator[bytes]:
        for function in [value.func] if value.HasField("func") else value.list.func:
            yield number(function.name)
            for name in sorted(function.attr):
                yield from values(function.attr[name])
        if not value.HasField("func") and not value.list.func:
            yield value.SerializeToString(deterministic=True)

    def number(name: str) -> bytes:
        if name not in functions:
            return name.encode()
        return b"function %d" % numbers.setdefault(name, len(numbers))

    def add(nodes: Any) -> None:
        for part in parts(nodes):
            total.update(b"%d:" % len(part))
            total.update(part)

    add(definition.node)
    done = 0
    while done < len(numbers):
        name = list(numbers)[done]
        add(functions[name].node_def)
        total.update(repr(sorted(functions[name].ret.items())).encode())
        done += 1
    return total.hexdigest()
