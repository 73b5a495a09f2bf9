"""Loads TensorFlow through `compat`, then uses Keras, amid a graph; prints what was there when."""

from __future__ import annotations

import json
import sys

from compat import tf1

KERAS = ("keras", "tf_keras")


def main() -> None:
    with tf1.Graph().as_default():
        images = tf1.placeholder(tf1.float32, [None, 4])
        listed = {"Graph", "Session"} <= set(dir(tf1))
        before = [name for name in KERAS if name in sys.modules]
        from tensorflow.keras.layers import Dense

        shape = Dense(3)(images).shape.as_list()
    from tensorflow.keras import optimizers

    report = {"before": before, "shape": shape, "optimizer": optimizers.SGD.__name__}
    print(json.dumps({**report, "listed": listed}))


if __name__ == "__main__":
    main()
