"""TensorFlow under two stable names, and facts about the installed release.

    from compat._tensorflow import tf, tf1  # tensorflow.compat.v2, tensorflow.compat.v1

TensorFlow is imported on the first access to an attribute. The module `release` has more facts, and
`private` uses the parts of TensorFlow without a public name.
"""

from compat._tensorflow.release import coordinator_module, quietly, tf, tf1, version

__all__ = ["coordinator_module", "quietly", "tf", "tf1", "version"]
