"""The rules: what has changed since 2016, which `check` finds and `migrate` rewrites."""

from __future__ import annotations

import argparse
from typing import NamedTuple

from compat.errors import UserError


class Rule(NamedTuple):
    """What is known about uses of one kind."""

    id: str
    gone: str  # What no longer takes the uses: a release of TensorFlow, or Python 3, NumPy.
    says: str
    before: str  # An example, of a script that has imported TensorFlow as `tf`.
    after: str = ""  # Its migrated form; without one, `migrate` leaves it as it is.
    optional: bool = False  # Whether a use also works as it is.


# In the order in which they are listed, and applied. What has no migrated form is taken by
# `compat.v1` as it is, or depends on the machine.
RULES = (
    Rule(
        "imports",
        "2.0",
        "modules of TensorFlow come from compat.v1",
        "from tensorflow.examples.tutorials.mnist import input_data",
        "from compat.v1.examples.tutorials.mnist import input_data",
    ),
    Rule(
        "renamed",
        "1.0, 2.0",
        "names that have another name today",
        'tf.train.SummaryWriter("logs", tf.mul(x, y))',
        'tf.summary.FileWriter("logs", tf.multiply(x, y))',
        optional=True,
    ),
    Rule(
        "unserved",
        "1.0, 2.0",
        "names that nothing serves are left, with a remark",
        "tf.contrib.ffmpeg.decode_audio(x, y, z)",
        "# compat 1: tf.contrib.ffmpeg.decode_audio is gone since TensorFlow 2.0: TensorFlow "
        "removed its kernels; run the script on its original TensorFlow, or remove it\n"
        "tf.contrib.ffmpeg.decode_audio(x, y, z)",
    ),
    Rule(
        "modules",
        "2.0",
        "modules of the script itself that use TensorFlow or Python 2 are named in a remark",
        "import reader",
        "# compat 1: reader.py has to be migrated as well; migrate the folder as a whole, "
        "python -m compat migrate FOLDER --output=NEW_FOLDER\n"
        "import reader",
    ),
    Rule(
        "concat",
        "1.0",
        "tf.concat took the axis first",
        "tf.concat(1, [x, y])",
        "tf.concat(axis=1, values=[x, y])",
        optional=True,
    ),
    Rule(
        "split",
        "1.0",
        "tf.split took the axis first",
        "tf.split(0, 2, x)",
        "tf.split(axis=0, num_or_size_splits=2, value=x)",
        optional=True,
    ),
    Rule(
        "losses",
        "1.0",
        "losses took logits before labels",
        "tf.nn.softmax_cross_entropy_with_logits(y, y_)",
        "tf.nn.softmax_cross_entropy_with_logits(logits=y, labels=y_)",
        optional=True,
    ),
    Rule(
        "shapes",
        "1.0",
        "sparse tensors took shape=",
        "tf.SparseTensor(indices=x, values=y, shape=z)",
        "tf.SparseTensor(indices=x, values=y, dense_shape=z)",
        optional=True,
    ),
    Rule(
        "sizes",
        "1.0",
        "images were resized to height and width",
        "tf.image.resize_images(x, 24, 32)",
        "tf.image.resize_images(x, [24, 32])",
        optional=True,
    ),
    Rule(
        "era",
        "0.x, 1.0",
        "calls whose meaning depends on the age of the script alone are left, with a remark",
        "tf.svd(x, True, False)",
        "# compat 1: tf.svd took compute_uv before full_matrices until 0.11; write the names: "
        "full_matrices=, compute_uv=\n"
        "tf.svd(x, True, False)",
    ),
    Rule(
        "division",
        "Python 3",
        "/ between integers gave an integer; not where one is evidently a float",
        "print 'half:', 7 / 2, 7 / 2.0",
        "print('half:', python2.divide(7, 2), 7 / 2.0)",
    ),
    Rule(
        "decode",
        "Python 3",
        "strings had decode()",
        "print x.decode('utf-8')",
        "print(python2.decode(x, 'utf-8'))",
    ),
    Rule(
        "builtins",
        "Python 3",
        "builtins that Python 2 had, and a pickle that reads its files",
        "import cPickle as pickle\nprint cmp(1, 2)",
        "import compat.v1.packages.pickle as pickle\nprint(python2.cmp(1, 2))",
    ),
    Rule(
        "packages",
        "NumPy 1.20, ...",
        "packages come from compat.v1.packages where a name is used that has changed",
        "import numpy as np\nx = np.float(1)",
        "import compat.v1.packages.numpy as np\nx = np.float(1)",
    ),
    Rule(
        "tostring",
        "NumPy 2.3",
        "the bytes of an array are tobytes()",
        "x = y.eval().tostring()",
        "x = y.eval().tobytes()",
    ),
    Rule(
        "elements",
        "NumPy 2.4",
        "an array of one element was a number in formats and for float()",
        'w = tf.Variable([0.5])\nx = sess.run(w)\nprint("w: %f" % x)',
        'w = tf.Variable([0.5])\nx = sess.run(w)\nprint("w: %f" % x.item())',
    ),
    Rule(
        "graph",
        "2.0",
        "sessions and placeholders need a graph, which compat run builds",
        'tf.placeholder("float")',
    ),
    Rule(
        "sampled",
        "1.0",
        "sampled losses took inputs before labels",
        "tf.nn.nce_loss(w, b, embed, train_labels, 64, 50000)",
    ),
    Rule("dropout", "2.0", "tf.nn.dropout took the probability to keep", "tf.nn.dropout(x, 0.75)"),
    Rule(
        "means",
        "2.0",
        "tf.losses.mean_squared_error returned one mean",
        "tf.losses.mean_squared_error(x, y)",
    ),
    Rule(
        "reverse",
        "1.0",
        "tf.reverse took a flag for each dimension",
        "tf.reverse(x, [True, False])",
    ),
    Rule(
        "arguments",
        "1.0",
        "arguments that are ignored",
        'tf.train.Supervisor(logdir="logs", graph_def=x)',
    ),
    Rule(
        "hosts",
        "",
        "addresses that are fixed in the script",
        'tf.train.ClusterSpec({"ps": ["pc-01:2222"]})',
    ),
    Rule("folders", "", "paths that are fixed in the script", 'tf.summary.FileWriter("/tmp/logs")'),
)
UNREADABLE = Rule("unreadable", "", "files that are neither Python nor notebooks", "x = (")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options that select rules."""
    add = parser.add_argument
    add("--only", metavar="ID,..", help="these rules only")
    add("--skip", metavar="ID,..", help="all rules but these")
    add("--list-rules", action="store_true", help="list the rules, and what each is about")


def selected(options: argparse.Namespace) -> list[Rule]:
    """Returns the rules of the command line; raises UserError for names of others."""
    only, skip = map(_ids, (options.only, options.skip))
    return chosen(only, skip)


def chosen(only: list[str] | None, skip: list[str] | None) -> list[Rule]:
    """Returns the rules of `--only` without those of `--skip`; raises UserError for others."""
    known = [rule.id for rule in RULES]
    for option, ids in (("--only", only), ("--skip", skip)):
        for name in ids or ():
            if name not in known:
                raise UserError(
                    f"{option} has {name!r}, expected rules among {', '.join(known)}; "
                    "--list-rules describes them"
                )
    return [r for r in RULES if (only is None or r.id in only) and r.id not in (skip or ())]


def print_list() -> None:
    """Prints each rule in a line."""
    for rule in RULES:
        print(f"{rule.id:<9} {rule.gone:<15} {rule.says}")


def _ids(option: str | None) -> list[str] | None:
    return None if option is None else [name.strip() for name in option.split(",")]
