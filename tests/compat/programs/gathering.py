"""Loops of session.run whose calls are gathered, beside the same loops whose calls are not."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import pickle
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable

import numpy as np

import compat
from compat import tf1
from compat.runtime.graphs import ahead

CASES: dict[str, Callable[[], Any]] = {}
GROUP = 5


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    """Registers a case, which builds a graph and runs it; returns what it saw."""
    CASES[function.__name__] = function
    return function


class Model:
    """Two layers that are trained by momentum, on batches of four rows."""

    def __init__(self, use_resource: bool = False) -> None:
        self.x = tf1.placeholder(tf1.float32, [None, 3], name="x")
        kwargs = {"use_resource": use_resource}
        first = tf1.random_normal_initializer(seed=1)
        with tf1.variable_scope("model"):
            self.first = tf1.get_variable("first", [3, 4], initializer=first, **kwargs)
            self.second = tf1.get_variable("second", [4, 1], initializer=first, **kwargs)
            self.step = tf1.get_variable(
                "step", [], tf1.int64, tf1.zeros_initializer(), trainable=False, **kwargs
            )
        hidden = tf1.tanh(tf1.matmul(self.x, self.first))
        self.loss = tf1.reduce_mean(tf1.square(tf1.matmul(hidden, self.second) - 1.0))
        self.rate = tf1.get_variable("rate", initializer=0.1, trainable=False, **kwargs)
        optimizer = tf1.train.MomentumOptimizer(self.rate, 0.9)
        self.train = optimizer.minimize(self.loss, global_step=self.step)


def batches(number: int) -> list[np.ndarray]:
    """Returns batches `[4, 3]`."""
    return list(np.random.RandomState(0).rand(number, 4, 3).astype(np.float32))


def opened() -> Any:
    """Returns a session whose variables have their first values."""
    session = tf1.Session()
    session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
    return session


def floats(values: Any) -> list[float]:
    """Returns numbers, which are looked at now."""
    return [float(value) for value in values]


def _trained(use_resource: bool) -> Any:
    model, losses, steps = Model(use_resource), [], []
    with opened() as session:
        for batch in batches(23):
            _, loss, step = session.run([model.train, model.loss, model.step], {model.x: batch})
            losses.append(loss)
            steps.append(step)
        weights = session.run([model.first, model.second])
        # On a variable of the second kind a read beside the update may see either.
        steps = [] if use_resource else floats(steps)
        return floats(losses), steps, [each.tolist() for each in weights]


@case
def reference_variables() -> Any:
    return _trained(use_resource=False)


@case
def resource_variables() -> Any:
    return _trained(use_resource=True)


@case
def a_batch_that_is_written_over() -> Any:
    model, buffer = Model(), np.zeros([4, 3], np.float32)
    with opened() as session:
        losses = []
        for batch in batches(12):
            buffer[...] = batch
            losses.append(session.run([model.train, model.loss], {model.x: buffer})[1])
        return floats(losses)


@case
def a_smaller_last_batch() -> Any:
    model = Model()
    with opened() as session:
        fed = batches(7)
        fed[3] = fed[3][:2]
        return floats([session.run([model.train, model.loss], {model.x: b})[1] for b in fed])


@case
def another_rate_and_evaluations_between() -> Any:
    model, losses = Model(), []
    rate = tf1.placeholder(tf1.float32, [])
    change = tf1.assign(model.rate, rate)
    with opened() as session:
        for number, batch in enumerate(batches(14)):
            losses.append(session.run([model.train, model.loss], {model.x: batch})[1])
            if number % 6 == 5:
                session.run(change, {rate: 0.1 / (number + 1)})
                losses.append(session.run(model.loss, {model.x: batch}))
        return floats(losses)


@case
def two_losses_in_turn() -> Any:
    model = Model()
    other = tf1.train.GradientDescentOptimizer(0.01).minimize(-model.loss)
    losses = []
    with opened() as session:
        for batch in batches(70):
            for train in (model.train, other):
                losses.append(session.run([train, model.loss], {model.x: batch})[1])
        return floats(losses)


@case
def a_branch_and_dropout_without_numbers() -> Any:
    model = Model()
    is_even = tf1.placeholder(tf1.bool, [])
    doubled = tf1.cond(is_even, lambda: model.loss * 2.0, lambda: model.loss)
    fetches = [model.train, tf1.nn.dropout(doubled, rate=0.0)]
    found = []
    with opened() as session:
        for number, batch in enumerate(batches(12)):
            found.append(session.run(fetches, {model.x: batch, is_even: number % 2 == 0})[1])
        return floats(found)


@case
def seeded_dropout() -> Any:
    tf1.set_random_seed(3)
    model = Model()
    noisy = tf1.nn.dropout(model.first, rate=0.5)
    loss = tf1.reduce_sum(tf1.square(noisy))
    train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
    with opened() as session:
        return floats([session.run([train, loss])[1] for _ in range(12)])


@case
def input_of_a_queue() -> Any:
    rows = tf1.constant(np.stack(batches(9)))
    number = tf1.train.range_input_producer(9, num_epochs=1, shuffle=False).dequeue()
    model = Model()
    error = tf1.reduce_mean(tf1.square(tf1.matmul(rows[number], model.first)))
    train = tf1.train.GradientDescentOptimizer(0.1).minimize(error)
    found = []
    with opened() as session:
        coordinator = tf1.train.Coordinator()
        threads = tf1.train.start_queue_runners(session, coordinator)
        try:
            while True:
                found.append(session.run([train, error, number])[1:])
        except tf1.errors.OutOfRangeError:
            pass
        coordinator.request_stop()
        coordinator.join(threads)
        return [floats(pair) for pair in found]


@case
def input_of_an_iterator() -> Any:
    data = tf1.data.Dataset.from_tensor_slices(np.stack(batches(8)))
    batch = tf1.data.make_one_shot_iterator(data).get_next()
    model = Model()
    error = tf1.reduce_mean(tf1.square(tf1.matmul(batch, model.first)))
    train = tf1.train.GradientDescentOptimizer(0.1).minimize(error)
    found = []
    with opened() as session, contextlib.suppress(tf1.errors.OutOfRangeError):
        while len(found) < 100:
            found.append(session.run([train, error])[1])
    return floats(found)


@case
def another_thread_reads() -> Any:
    model, seen = Model(), []
    with opened() as session:
        for number, batch in enumerate(batches(9)):
            session.run(model.train, {model.x: batch})
            if number % 4 == 3:
                look = threading.Thread(target=lambda: seen.append(session.run(model.first).sum()))
                look.start()
                look.join()
    return floats(seen)


@case
def a_state_that_is_fed_back() -> Any:
    state, given = np.ones([2], np.float32), tf1.placeholder(tf1.float32, [2])
    weight = tf1.get_variable("weight", initializer=2.0)
    with tf1.control_dependencies([given * weight]):
        train = tf1.assign_add(weight, 0.25)
    following = given * 0.5 + 1.0
    with opened() as session:
        for _ in range(12):
            state, _ = session.run([following, train], {given: state})
        return floats(state), float(session.run(weight))


def compared(function: Callable[[], Any]) -> dict[str, Any]:
    """Runs a case without and with groups; returns whether it saw the same, and what was said."""
    values = []
    said = io.StringIO()
    for gathers in (False, True):
        tf1.reset_default_graph()
        ahead_or_not = compat.ahead(GROUP, after=0) if gathers else contextlib.nullcontext()
        with contextlib.redirect_stdout(said), ahead_or_not:
            values.append(function())
    return {"same": values[0] == values[1], "values": values, "said": said.getvalue()}


def kinds_of_use() -> dict[str, Any]:
    """Uses what calls return in the ways of programs; returns what each gave."""
    tf1.reset_default_graph()
    model = Model()
    double = tf1.cast(model.loss, tf1.float64)
    fetches = [model.train, model.loss, double, model.step, model.first]
    with compat.ahead(GROUP, after=0), opened() as session:

        def values() -> Any:
            return session.run(fetches, {model.x: batches(1)[0]})[1:]

        loss, wide, step, weights = values()
        summary = tf1.Summary.Value(tag="loss", simple_value=loss).simple_value
        return {
            "array": isinstance(values()[3], np.ndarray),
            "float32": isinstance(values()[0], np.float32),
            "text": "%d %.4f" % (step, loss) == f"{int(step)} {float(loss):.4f}",  # noqa: UP031
            "format": f"{loss:.3f}" == f"{float(loss):.3f}",
            "repr": repr(values()[3]).startswith("array("),
            "json": json.loads(json.dumps({"loss": values()[1]}))["loss"] > 0,
            "pickle": type(pickle.loads(pickle.dumps(values()[3]))).__name__,
            "copy": type(copy.deepcopy(values()[3])).__name__,
            "comparison": bool(loss > 0) and loss == loss and not loss < 0,
            "in": step in [0, 1],
            "index": ["a", "b", "c"][step] in "ab",
            "asarray": np.asarray(values()[3]).shape,
            "arithmetic": type(np.float32(1) + loss).__name__,
            "round": round(float(wide), 1) == round(wide, 1),
            "shape": weights.shape,
            "simple_value": abs(summary - float(loss)) < 1e-6,
            "feed": session.run(model.loss * 2, {model.x: values()[3][:, :3].T[:, :3]}) > 0,
        }


def failure() -> dict[str, Any]:
    """The third of four calls fails: the first two are done, the fourth is not."""
    tf1.reset_default_graph()
    given = tf1.placeholder(tf1.int32, [], name="given")
    total = tf1.get_variable("total", initializer=0)
    checked = tf1.debugging.assert_less(given, 10, message="too large")
    with tf1.control_dependencies([checked]):
        train = tf1.assign_add(total, given)
    found: dict[str, Any] = {}
    with opened() as session:
        with contextlib.redirect_stdout(io.StringIO()), compat.ahead(GROUP, after=0):
            for number in (1, 2, 30, 4):
                value = session.run([train, total], {given: number})[1]
            try:
                float(value)
            except tf1.errors.InvalidArgumentError as error:
                found["error"] = str(error).partition(":")[0]
                found["names"] = "too large" in str(error)
            found["goes on"] = float(session.run(total))
            session.run([train, total], {given: 1})
        found["in the end"] = float(session.run(total))
    return found


def failure_of_a_full_group() -> dict[str, Any]:
    """The third of five calls fails while the program makes more: none behind it is done."""
    tf1.reset_default_graph()
    given = tf1.placeholder(tf1.int32, [], name="given")
    total = tf1.get_variable("total", initializer=0)
    with tf1.control_dependencies([tf1.debugging.assert_less(given, 10)]):
        train = tf1.assign_add(total, given)
    returned, message, value = 0, "", None
    with opened() as session, contextlib.redirect_stdout(io.StringIO()):
        with compat.ahead(GROUP, after=0):
            try:
                for number in (1, 2, 30, *range(4, 10)):
                    value = session.run([train, total], {given: number})[1]
                    returned += 1
                float(value)  # type: ignore[arg-type]
            except tf1.errors.InvalidArgumentError as error:
                message = str(error).partition(":")[0]
        expected = (
            f"call 3 of 5 that were gathered has failed, {returned - 3} behind it are not made"
        )
        return {"says": message == expected or message, "total": int(session.run(total))}


def interruption() -> dict[str, Any]:
    """Ctrl-C after three calls that are gathered."""
    tf1.reset_default_graph()
    model, said = Model(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(KeyboardInterrupt), compat.ahead(
        GROUP, after=0
    ), opened() as session:
        for batch in batches(8):
            session.run(model.train, {model.x: batch})
        raise KeyboardInterrupt
    return {"said": said.getvalue()}


def summaries(folder: Path) -> dict[str, Any]:
    """A writer is handed summaries, which is no look; it has all of them in their order."""
    tf1.reset_default_graph()
    model = Model()
    written = tf1.summary.scalar("loss", model.loss)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), compat.ahead(GROUP, after=0), opened() as session:
        writer = tf1.summary.FileWriter(str(folder))
        losses = []
        for number, batch in enumerate(batches(12)):
            _, loss, summary = session.run([model.train, model.loss, written], {model.x: batch})
            writer.add_summary(summary, number)
            losses.append(loss)
        writer.close()
    (path,) = folder.glob("events.*")
    events = [
        (event.step, value.simple_value)
        for event in tf1.train.summary_iterator(str(path))
        for value in event.summary.value
    ]
    return {"same": events == [*enumerate(map(float, losses))], "said": said.getvalue()}


def waiting() -> dict[str, Any]:
    """Calls that nobody looks at are made after a second."""
    tf1.reset_default_graph()
    weight = tf1.get_variable("weight", initializer=0.0, use_resource=True)
    train = tf1.assign_add(weight, 1.0).op
    said = contextlib.redirect_stdout(io.StringIO())
    with said, compat.ahead(GROUP, after=0), opened() as session:
        session.run(train)
        group = ahead._active.group
        deadline = time.monotonic() + 60
        while not group.is_over and time.monotonic() < deadline:
            time.sleep(0.05)
        return {"made": group.is_over}


def signal() -> dict[str, Any]:
    """An element of a queue that other programs see is put in after the calls that are gathered."""
    tf1.reset_default_graph()
    total = tf1.get_variable("total", initializer=0)
    train = tf1.assign_add(total, 1).op
    own, shared = (tf1.FIFOQueue(9, [tf1.int32], shared_name=name) for name in (None, "the_end"))
    own_put, shared_put = own.enqueue(1), shared.enqueue(1)
    made = []
    said = contextlib.redirect_stdout(io.StringIO())
    with said, compat.ahead(GROUP, after=0), opened() as session:
        for put in (own_put, shared_put):
            session.run(train)
            session.run(put)
            made.append(ahead._active.group is None)
    return {"made": made}


def main() -> None:
    """Runs all cases; prints what they saw, by name, as JSON."""
    settings = json.loads(sys.argv[1])
    tf1.disable_v2_behavior()
    compat.select_runtime(settings["runtime"])
    tf1.disable_resource_variables()
    found: dict[str, Any] = {name: compared(function) for name, function in CASES.items()}
    found["use"] = kinds_of_use()
    found["failure"], found["interruption"] = failure(), interruption()
    found["failure of a full group"] = failure_of_a_full_group()
    found["signal"] = signal()
    found["summaries"], found["waiting"] = summaries(Path.cwd() / "written"), waiting()
    print(json.dumps(found, default=lambda value: value.item()))


if __name__ == "__main__":
    main()
