"""A function that builds all of a program, and steps that compute parts of it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

import compat
from compat import tf, tf1

if TYPE_CHECKING:
    from tests.compat.programs.cases import refusal
else:
    from cases import refusal


def build(x: Any, y: Any, rate: Any) -> Any:
    """Builds a regression, as a graph of TensorFlow 1.x."""
    step = compat.get_or_create_global_step()
    with tf1.name_scope("layer"):
        weights = tf1.Variable(tf1.zeros([2, 1]))
    output = tf.matmul(x, weights)
    loss = tf.reduce_mean(tf.square(output - y))
    train = tf1.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)
    tf1.summary.scalar("loss", loss)
    merged = tf1.summary.merge_all()
    found = {"output": output, "loss": loss, "train": train, "step": step, "merged": merged}
    return {**found, "all": [train, {"loss": loss, "output": output}]}


def main(runtime: str) -> None:
    compat.select_runtime(runtime)
    shapes = {"x": [None, 2], "y": [None, 1], "rate": []}
    signature = [tf.TensorSpec(shape, name=name) for name, shape in shapes.items()]
    whole = compat.step(build, signature)
    train = whole.select("train", "loss", "step", "merged", inputs=["rate", "x", "y"])
    update = whole.select("train")
    predict = whole.select("output", inputs=["x"])
    both, part = whole.select("all"), whole.select("all/1", inputs=["x", "y"])
    seen: dict[str, Any] = {
        "value": refusal(lambda: whole.select("lost")),
        "parameter": refusal(lambda: whole.select("output", inputs=["z"])),
        "input": refusal(lambda: whole.select("loss", inputs=["x"])),
        "names": [sorted([*step.names, *step.others]) for step in (train, update, predict)],
        "summaries": [step.summary is not None for step in (whole, update, predict)],
        "losses": [],
    }
    x, y = np.float32([[1, 2], [3, 4]]), np.float32([[1], [2]])
    with compat.Supervisor().managed_session() as session:
        for rate in (0.25, 0.125):
            values = session.run(train, rate, x, y)
            seen["losses"].append(values["loss"])
        text = values["merged"]
        seen["summary"] = tf1.Summary.FromString(text).value[0].simple_value == values["loss"]
        seen["steps"] = [values["step"], session.run(update, x, y, 0.0)["global_step"]]
        seen["output"] = session.run(predict, x)["output"].tolist()
        fed = dict(zip(signature, (x, y, 0.0)))
        seen["all"] = [
            session.run(both, x, y, 0.0)["all"],
            session.run_many(both, x[None], y[None], np.zeros([1]))["all"],
            session.run(whole["all"], feed_dict=fed),
            session.run(whole, x, y, 0.0)["all"],
        ]
        for values in seen["all"]:
            values[1] = {name: np.ravel(value).tolist() for name, value in values[1].items()}
        seen["part"] = session.run(part, x, y)["all/1"]
        seen["names"].append(sorted(session.run(both, x, y, 0.0)))
    print(json.dumps(seen))


if __name__ == "__main__":
    main(json.loads(sys.argv[1])["runtime"])
