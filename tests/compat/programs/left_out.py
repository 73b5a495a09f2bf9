"""Makes steps that leave out an assignment, and none; the lines about it are TensorFlow's log."""

from __future__ import annotations

import json
import sys
from typing import Any

import compat
from compat import tf, tf1


def main(settings: dict[str, Any]) -> None:
    compat.select_runtime(settings["runtime"])
    with compat.device(None):
        global_step = compat.get_or_create_global_step()
        mean = tf.Variable([0.0, 0.0], name="mean", trainable=False)
        weights = tf.Variable([1.0, 1.0], name="weights")

        def step(x: Any, held: bool) -> dict[str, Any]:
            loss, update = tf.reduce_sum(weights * x), mean.assign(x)
            tf1.metrics.mean(loss)  # Whose count of one's own need not be kept.
            optimizer = tf1.train.AdamOptimizer(0.1)  # Has variables, which it gives first values.
            with tf.control_dependencies([update] if held else []):
                train = optimizer.minimize(loss, global_step=global_step)
            return {"loss": loss, "train": train}

        for held in (True, False):
            print("held" if held else "left out", file=sys.stderr, flush=True)
            compat.step(lambda x, held=held: step(x, held), [tf.TensorSpec([2], tf.float32)])
    print(json.dumps({}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
