"""Losses took logits before labels, by position.

TensorFlow 1.0: "Change arg order for `{softmax,sparse_softmax,sigmoid}_cross_entropy_with_logits`
to be (labels, predictions), and force use of named args."
"""

from __future__ import annotations

import ast

from compat.scripts.reading import literals
from compat.scripts.rules.findings import CHANGES, SERVED
from compat.scripts.rules.forms import Form, Forms, finder, rewriter
from compat.scripts.rules.rule import Rule


def _by_position(call: ast.Call, _: bool) -> bool:
    # In 1.x the first argument was a sentinel, always None, that forced keywords.
    return not literals.is_none(call.args[0])


_LOGITS = Form(
    "losses",
    CHANGES,
    "took (logits, labels) by position before 1.0; TensorFlow 2 takes (labels, logits), so it "
    "computes with the two swapped; compat run restores the old order",
    _by_position,
    names=("logits", "labels", "name"),
    in_v1="took (logits, labels) by position before 1.0; compat run restores the old order",
)
_OF_DIM = _LOGITS._replace(names=("logits", "labels", "dim", "name"))
_TARGETS = Form(
    "losses",
    SERVED,
    "took targets=, now labels=; compat run accepts both",
    keywords={"targets": "labels"},
)
FORMS: Forms = {
    "nn.sigmoid_cross_entropy_with_logits": (_LOGITS, _TARGETS),
    "nn.softmax_cross_entropy_with_logits": (_OF_DIM,),
    "nn.softmax_cross_entropy_with_logits_v2": (_OF_DIM,),
    "nn.sparse_softmax_cross_entropy_with_logits": (_LOGITS,),
    "nn.weighted_cross_entropy_with_logits": (_TARGETS,),
}
RULE = Rule(
    "losses",
    "1.0",
    "losses took logits before labels",
    "tf.nn.softmax_cross_entropy_with_logits(y, y_)",
    "tf.nn.softmax_cross_entropy_with_logits(logits=y, labels=y_)",
    optional=True,
    find=finder(FORMS),
    rewrite=rewriter(FORMS),
)
