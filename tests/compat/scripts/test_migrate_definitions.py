"""`python -m compat migrate` of scripts whose model is a class of a module, or made once."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Callable

import pytest

from compat.errors import UserError
from compat.scripts.migrating.command import main
from tests.compat.scripts.conftest import run_python

pytest.importorskip("asttokens")
pytest.importorskip("fissix")
pytestmark = pytest.mark.once
# A decorator of 2016 for properties that are made once, in a scope, also with arguments.
LAZY = """\
import functools
import tensorflow as tf


def optional(function):
    @functools.wraps(function)
    def decorator(*words, **given):
        if len(words) == 1 and len(given) == 0 and callable(words[0]):
            return function(words[0])
        else:
            return lambda method: function(method, *words, **given)
    return decorator


@optional
def once(function, scope=None, *words, **given):
    \"\"\"Of a property.\"\"\"
    attribute = '_once_' + function.__name__
    name = scope or function.__name__

    @property
    @functools.wraps(function)
    def decorator(self):
        if not hasattr(self, attribute):
            with tf.variable_scope(name, *words, **given):
                setattr(self, attribute, function(self))
        return getattr(self, attribute)
    return decorator
"""
MODEL = """\
import numpy
import tensorflow as tf
from lazy import once

RATE = 0.5
tf.app.flags.DEFINE_float("momentum", 0.5, "Momentum.")


def squares(a, b):
    return tf.reduce_mean(tf.square(a - b))


class Model:
    SIZE = 4
    SIZES = [SIZE, 1]

    def __init__(self, rate=RATE):
        self.x = tf.placeholder(tf.float32, [None, Model.SIZE], name="x")
        self.y = tf.placeholder(tf.float32, [None, 1], name="y")
        self.rate = rate
        self.train

    @once(initializer=tf.constant_initializer(0.1))
    def output(self):
        w = tf.get_variable("w", self.SIZES)
        return tf.matmul(self.x, w)

    @once
    def loss(self):
        return squares(self.output, self.y)

    @once("updates")
    def train(self):
        return tf.train.GradientDescentOptimizer(self.rate).minimize(self.loss)

    @once
    def unused(self):
        return tf.zeros([])


def fill(model, batch):
    return {model.x: batch, model.y: batch.sum(1, keepdims=True)}


def run(session, model):
    numpy.random.seed(3)
    for _ in range(20):
        feed = fill(model, numpy.random.rand(8, Model.SIZE))
        _, loss = session.run([model.train, model.loss], feed_dict=feed)
    return loss
"""
SCRIPT = """\
import tensorflow as tf
from model import Model, run

model = Model(rate=0.2)
with tf.Session() as session:
    session.run(tf.initialize_all_variables())
    print("%.6f" % run(session, model))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {"lazy.py": LAZY, "model.py": MODEL, "train.py": SCRIPT}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def migrated(project: Path, to: str = "compat") -> str:
    main([f"--to={to}", "--output=new.py", "train.py"])
    text = (project / "new.py").read_text(encoding="utf-8")
    os.remove("new.py")
    return text


def test_a_class_of_a_module_is_taken_as_one_of_the_script(project: Path) -> None:
    """What it uses of the module is imported from there, which still defines its flags."""
    found = migrated(project)
    names = ["lazy.py", "lazy_v1.py", "model.py", "model_v1.py", "train.py"]
    assert sorted(os.listdir()) == names
    assert "\nfrom model_v1 import RATE, squares\nimport numpy\n" in found
    assert (
        """
def build(x, y):
    with tf.variable_scope("updates"):
        with tf.variable_scope("loss"):
            with tf.variable_scope("output", initializer=tf.constant_initializer(0.1)):
                w = tf.get_variable("w", SIZES)
                output = tf.matmul(x, w)
            model_loss = squares(output, y)
        train = tf.train.GradientDescentOptimizer(rate).minimize(model_loss)
    return {
        "train": train,
        "model_loss": model_loss,
    }
"""
        in found
    )
    assert (
        """
    for _ in range(20):
        batch = numpy.random.rand(8, SIZE)
        feed = (batch, batch.sum(1, keepdims=True))
        loss = session.run(train_2, *feed)["model_loss"]
"""
        in found
    )


def test_modules_that_are_no_longer_needed_are_not_written(project: Path) -> None:
    for name in ("model.py", "train.py"):
        text = (project / name).read_text(encoding="utf-8")
        text = text.replace("squares(", "tf.losses.mean_squared_error(").replace("def tf.", "def ")
        text = re.sub(r"tf.app.flags.*\n|def losses[^#]*?\n\n\n|=RATE", "", text)
        (project / name).write_text(text, encoding="utf-8")
    for to in ("compat", "experiment"):
        assert "_v1" not in migrated(project, to)
    assert sorted(os.listdir()) == ["lazy.py", "model.py", "train.py"]


def test_it_trains_on_either_runtime(
    project: Path, run_step: Callable[[str, str], Any], runtime: str
) -> None:
    ran = run_step(migrated(project), runtime)
    assert (ran.code, ran.out.split()[-1:]) == (0, ["0.002133"]), ran.out


@pytest.mark.slow
@pytest.mark.parametrize("to", ["compat", "experiment"])
def test_it_is_proven(project: Path, to: str) -> None:
    text = MODEL.replace('tf.app.flags.DEFINE_float("momentum", 0.5, "Momentum.")\n', "")
    (project / "model.py").write_text(text, encoding="utf-8")
    done = run_python("-m", "compat", "migrate", f"--to={to}", "--prove", "train.py")
    assert "equal: 20 losses of 20 training calls;" in done.stdout, done


@pytest.mark.parametrize(
    ("imports", "called"),
    [
        ("import model as network", "network.{}"),
        ("from model import *", "{}"),
        ("from model import Model as Network, run as go", "{}"),
    ],
)
def test_however_it_is_imported(imports: str, called: str, project: Path) -> None:
    text = SCRIPT.replace("from model import Model, run", imports)
    for name, other in (("Model", "Network"), ("run", "go")):
        word = other if other in imports else name
        text = text.replace(f" {name}(", f" {called.format(word)}(")
    (project / "train.py").write_text(text, encoding="utf-8")
    found = migrated(project)
    assert "class " not in found and found.count("session.run(") == 1


# What is changed in the module, and what is said of it.
REFUSED = {
    "its property output is first read in a condition, a loop or a method": (
        "        self.train\n",
        "        if rate:\n            self.output\n",
    ),
    "_once_loss is used": ("        self.train\n", "        self._once_loss = 1\n"),
    "its constant SIZE is set": ("        self.train\n", "        self.SIZE = 5\n"),
    "its method output has a decorator": ("@once(initializer", "@other(initializer"),
    "its attribute train is set nowhere": (
        "        self.train\n",
        "        pass\n",
    ),
    "its method make_train, which builds, returns in other places than its end": (
        "        return tf.train",
        "        if self.x is None: return\n        return tf.train",
    ),
}


@pytest.mark.parametrize("to", ["compat", "experiment"])
@pytest.mark.parametrize("why", REFUSED)
def test_what_it_refuses(why: str, to: str, project: Path) -> None:
    """With the line of the module, and without writing anything."""
    text = MODEL.replace(*REFUSED[why])
    assert text != MODEL
    (project / "model.py").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(f"since {why}")):
        migrated(project, to)
    assert sorted(os.listdir()) == ["lazy.py", "model.py", "train.py"]


def test_a_refusal_names_the_line_of_the_module(project: Path) -> None:
    text = MODEL.replace("return tf.train", "print(self)\n        return tf.train")
    (project / "model.py").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="^model.py:45: the class Model .* self is used for more"):
        migrated(project)


def test_what_depends_on_its_module_stays_there(project: Path) -> None:
    text = MODEL.replace("    numpy.random", "    global RATE\n    RATE = 1\n    numpy.random")
    (project / "model.py").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="nothing in it is trained"):
        migrated(project)
