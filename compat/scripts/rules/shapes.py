"""Sparse tensors took `shape=`.

TensorFlow 1.0: "The shape keyword argument of the `SparseTensor` constructor changes its name to
`dense_shape` between Tensorflow 0.12 and Tensorflow 1.0."
"""

from __future__ import annotations

from compat.scripts.rules.findings import SERVED
from compat.scripts.rules.forms import Form, Forms, finder, rewriter
from compat.scripts.rules.rule import Rule

_SHAPE = Form(
    "shapes",
    SERVED,
    "took shape=, now dense_shape=; compat run accepts both",
    keywords={"shape": "dense_shape"},
)
FORMS: Forms = {"SparseTensor": (_SHAPE,), "SparseTensorValue": (_SHAPE,)}
RULE = Rule(
    "shapes",
    "1.0",
    "sparse tensors took shape=",
    "tf.SparseTensor(indices=x, values=y, shape=z)",
    "tf.SparseTensor(indices=x, values=y, dense_shape=z)",
    optional=True,
    find=finder(FORMS),
    rewrite=rewriter(FORMS),
)
