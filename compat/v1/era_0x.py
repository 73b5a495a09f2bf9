"""Imported by a program that was written for TensorFlow 0.x, before it uses `compat.v1`.

`tf.__version__` is then "0.12.1", and MNIST comes in the order of that time.
"""

from compat.contrib import era

era.found = "0.x"
