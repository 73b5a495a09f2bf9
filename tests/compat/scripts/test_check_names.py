"""Which names a check finds, by whatever a script calls them, and where it says they are."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Mapping

import pytest

from compat.scripts.names import packages, table
from compat.scripts.rules import names
from compat.scripts.rules.rule import Finding
from compat.scripts.rules.sources import check

Check = Callable[[str], "list[Finding]"]


@pytest.fixture
def found(tmp_path: Path) -> Check:
    """What is found in a text."""

    def find(text: str) -> list[Finding]:
        path = tmp_path / "script.py"
        path.write_text(text, encoding="utf-8")
        return check(str(path))

    return find


@pytest.fixture
def contrib(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, table.Served]:
    """A table whose part for `tf.contrib` is ours."""
    names = {
        **{name: entry for name, entry in table.NAMES.items() if not name.startswith("contrib.")},
        "contrib.slim": table.Served("tf_slim:", "2.0"),
        "contrib.framework.arg_scope": table.Served("tf_slim:arg_scope", "2.0", "the same"),
        "contrib.layers": table.Served("tf_slim.layers:", "2.0"),
        "contrib.nccl": table.Served("", "2.0", "it needs GPUs"),
    }
    monkeypatch.setattr(table, "NAMES", names)
    monkeypatch.setattr(table, "_PACKAGES", {"contrib", "contrib.framework"})
    return names


def test_old_name_is_found_with_its_server_and_its_end(found: Check) -> None:
    (finding,) = found("import tensorflow as tf\n\nx = 1 + tf.mul(2, 3)\n")
    assert (finding.line, finding.column) == (3, 9)
    assert (finding.kind.name, finding.name) == ("served", "tf.mul")
    assert (finding.served_by, finding.gone) == ("tf.multiply", "1.0")
    assert not finding.fails
    assert "gone since TensorFlow 1.0; compat run serves it with tf.multiply" in finding.message


@pytest.mark.parametrize(
    "script",
    [
        "import tensorflow as anything\nanything.mul(1, 2)",
        "import tensorflow\ntensorflow.mul(1, 2)",
        "import tensorflow.python\ntensorflow.mul(1, 2)",
        "import tensorflow\ntf = tensorflow\ntf.mul(1, 2)",
        "import tensorflow as tf\nproduct = tf.mul",
        "import tensorflow as tf\none, two = tf.mul, 2",
        "import tensorflow as tf\ngetattr(tf, 'mul')(1, 2)",
        "import importlib\nimportlib.import_module('tensorflow').mul(1, 2)",
        "tf = __import__('tensorflow')\ntf.mul(1, 2)",
        "from tensorflow import mul as times\ntimes(1, 2)",
        "from tensorflow import *\nmul(1, 2)",
        "def f():\n  import tensorflow as tf\n  return tf.mul(1, 2)",
        "def f():\n  global tf\n  import tensorflow as tf\ndef g():\n  return tf.mul(1, 2)",
        "def f():\n  return tf.mul(1, 2)\nimport tensorflow as tf",
        "try:\n  import tensorflow as tf\nexcept ImportError:\n  tf = None\ntf.mul(1, 2)",
        "import tensorflow as tf\nclass A(object):\n  def f(self):\n    return tf.mul(1, 2)",
        "import tensorflow as tf\nclass A:\n  tf = 3\n  def f(self):\n    return tf.mul(1, 2)",
        "import tensorflow as tf\nf = lambda a, b=2: tf.mul(a, b)",
        "import tensorflow as tf\nf = [tf.mul(a, 2) for a in (1, 2)]",
        "import tensorflow as tf\n@tf.mul\ndef f(): pass",
    ],
)
def test_name_is_found_by_whatever_it_is_called(script: str, found: Check) -> None:
    assert [finding.name for finding in found(script)] == ["tf.mul"]


@pytest.mark.parametrize(
    "script",
    [
        "import numpy as tf\ntf.mul(1, 2)",
        "import re\nre.sub('a', 'b', 'c')",
        "import struct\nstruct.unpack('>I', b'0000')",
        "from .tensorflow import mul\nmul(1, 2)",
        "import tensorflow as tf\ndef f(tf):\n  return tf.mul(1, 2)",
        "import tensorflow as tf\ndef f():\n  tf = object()\n  return tf.mul(1, 2)",
        "from tensorflow import *\ndef mul(a, b): return a\nmul(1, 2)",
        "import tensorflow as tf\ntf.multiply(1, 2)",
        "import tensorflow as tf\ntf.app.flags.DEFINE_string('a', 'b', 'c')",
        "import tensorflow as tf\nflags = tf.app.flags\nflags.DEFINE_string('a', 'b', 'c')",
        "import tensorflow as tf\ntf.concat([a, b], 1)",
        "import tensorflow.compat.v1 as tf\ntf.train.Saver()\ntf.concat([a, b], 1)",
        "import tensorflow.compat.v1 as tf\ntf.nn.dropout(a, 0.5)",
        "from tensorflow.compat import v1 as tf\ntf.disable_v2_behavior()\ntf.Session()",
        "",
    ],
)
def test_what_is_no_old_name_is_not_found(script: str, found: Check) -> None:
    assert found(script) == []


@pytest.mark.parametrize(
    ("script", "name", "served_by"),
    [
        ("import tensorflow.contrib.slim as slim", "tf.contrib.slim", "tf_slim"),
        ("from tensorflow.contrib import slim", "tf.contrib.slim", "tf_slim"),
        ("from tensorflow.contrib.slim import conv2d", "tf.contrib.slim.conv2d", "tf_slim.conv2d"),
        (
            "import tensorflow as tf\nc = tf.contrib\nc.layers.flatten(x)",
            "tf.contrib.layers.flatten",
            "tf_slim.layers.flatten",
        ),
        (
            "from tensorflow.contrib import framework as f\nf.arg_scope([])",
            "tf.contrib.framework.arg_scope",
            "tf_slim.arg_scope",
        ),
        (
            "from tensorflow.examples.tutorials.mnist import input_data",
            "tf.examples.tutorials.mnist.input_data",
            "compat.v1.examples.tutorials.mnist.input_data",
        ),
        # `tf.compat.v1` has them under compat run.
        ("import tensorflow.compat.v1 as tf\ntf.mul(1, 2)", "tf.compat.v1.mul", "tf.multiply"),
        ("from tensorflow.compat.v1 import *\nmul(1, 2)", "tf.compat.v1.mul", "tf.multiply"),
        (
            "import tensorflow as tf\ntf.compat.v1.contrib.layers.flatten",
            "tf.compat.v1.contrib.layers.flatten",
            "tf_slim.layers.flatten",
        ),
        (
            "import tensorflow.compat.v1 as tf\ntf.concat(1, [x])",
            "tf.compat.v1.concat",
            "compat.v1.concat",
        ),
        (
            "import tensorflow.compat.v1 as tf\n"
            "tf.nn.sigmoid_cross_entropy_with_logits(x, y), tf.nn.dropout(x, 0.5)",
            "tf.compat.v1.nn.sigmoid_cross_entropy_with_logits",
            "compat.v1.nn.sigmoid_cross_entropy_with_logits",
        ),
    ],
)
@pytest.mark.usefixtures("contrib")
def test_modules_are_followed(script: str, name: str, served_by: str, found: Check) -> None:
    (finding,) = found(script)
    assert (finding.kind.name, finding.name, finding.served_by) == ("served", name, served_by)


def test_what_serves_a_name_can_be_imported() -> None:
    """No module of ours is named but `compat.v1`, which has all old names."""
    served = [names.find(name) for name in table.NAMES]
    served += [names.find(name, is_tensorflow=False) for name in packages.GONE]
    by = [finding.served_by for finding in served if finding is not None]
    ours = [name for name in by if name.startswith("compat.")]
    assert len(ours) > 100
    assert [name for name in ours if not name.startswith("compat.v1.")] == []
    assert "compat.v1.packages.numpy.asscalar" in ours


@pytest.mark.parametrize(
    ("script", "name"),
    [
        ("import tensorflow as tf\ntf.contrib.layers_of_mine.x(1)", "tf.contrib.layers_of_mine.x"),
        ("from tensorflow.contrib import nccl\nnccl.all_sum(x)", "tf.contrib.nccl"),
        ("import tensorflow as tf\ntf.contrib.framework.nothing", "tf.contrib.framework.nothing"),
        ("from tensorflow.models.rnn import nothing", "tf.models.rnn.nothing"),
        ("from tensorflow.examples.nothing import *", "tf.examples.nothing"),
        ("import tensorflow.compat.v1 as tf\ntf.contrib.ffmpeg.x", "tf.compat.v1.contrib.ffmpeg.x"),
    ],
)
@pytest.mark.usefixtures("contrib")
def test_what_nothing_serves_fails(script: str, name: str, found: Check) -> None:
    (finding,) = found(script)
    assert (finding.kind.name, finding.name, finding.served_by) == ("fails", name, "")
    assert finding.fails


@pytest.mark.usefixtures("contrib")
def test_failing_name_says_why_and_what_to_do(found: Check) -> None:
    (finding,) = found("from tensorflow.contrib import nccl")
    assert finding.message == (
        "tf.contrib.nccl is gone since TensorFlow 2.0: it needs GPUs; run the script on its "
        "original TensorFlow, or remove it"
    )


@pytest.mark.usefixtures("contrib")
def test_script_that_can_do_without_a_name_does_not_fail(found: Check) -> None:
    attempt = "try:\n  from tensorflow.contrib import nccl\nexcept ImportError:\n  nccl = None\n"
    assert found(attempt + "print(nccl and nccl.all_sum)") == []


def test_old_library_makes_one_finding_of_graphs(found: Check) -> None:
    script = "import tensorflow as tf\nx = tf.placeholder('float')\nwith tf.Session():\n  pass\n"
    (finding,) = found(script)
    assert (finding.kind.name, finding.line, finding.fails) == ("graph", 2, False)


def test_columns_are_of_what_python_2_was_converted_from(found: Check) -> None:
    pytest.importorskip("fissix")
    script = (
        "import tensorflow as tf\n"
        "from urllib import quote, urlopen\n"  # Two lines in Python 3.
        "print 'ä', tf.mul(1, 2)\n"
        "for i in xrange(3): tf.neg(i)\n"
    )
    places = [(finding.name, finding.line, finding.column) for finding in found(script)]
    assert places == [("tf.mul", 3, 12), ("tf.neg", 4, 21)]
