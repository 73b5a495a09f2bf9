r"""Reads a script or a notebook as a `Program`: text as Python 3, trees, names, edits.

>>> from compat.scripts.reading import conversion, program
>>> script = program.of(conversion.from_text("import tensorflow as tf\ntf.mul(2, 3)\n", "old.py"))
>>> [use.name for use in script.of_tensorflow if use.call]
['mul']
"""
