"""A program for TensorFlow 0.x imports this module before it uses `compat.v1`.

`tf.__version__` is then "0.12.1", and MNIST has the example order of that release.
"""

from compat.contrib import era

era.found = "0.x"
