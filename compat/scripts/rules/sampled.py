"""Sampled losses took inputs before labels.

TensorFlow 1.0: "`tf.nn.sampled_softmax_loss` and `tf.nn.nce_loss` have both changed their API such
that you need to switch the `inputs, labels` to `labels, inputs` parameters."
"""

from __future__ import annotations

import ast

from compat.scripts.rules.findings import CHANGES
from compat.scripts.rules.forms import Form, Forms, finder, is_named, positional
from compat.scripts.rules.rule import Rule


def _inputs_first(call: ast.Call, is_0x: bool) -> bool:
    args = positional(call)
    if len(args) < 4 or is_named(args[2], "label|target"):
        return False
    return is_0x or is_named(args[3], "label|target")


_SAMPLED = Form(
    "sampled",
    CHANGES,
    "took (weights, biases, inputs, labels) before 1.0; TensorFlow 2 takes labels before inputs; "
    "compat run decides by types and shapes",
    _inputs_first,
)
FORMS: Forms = {"nn.nce_loss": (_SAMPLED,), "nn.sampled_softmax_loss": (_SAMPLED,)}
RULE = Rule(
    "sampled",
    "1.0",
    "sampled losses took inputs before labels",
    "tf.nn.nce_loss(w, b, embed, train_labels, 64, 50000)",
    find=finder(FORMS),
)
