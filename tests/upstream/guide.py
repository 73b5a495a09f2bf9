"""The TensorFlow 1.x cells of TensorFlow's migration guide, and which of them run here.

Prints the table of docs/migration.md for a copy of the guide:

    python tests/upstream/guide.py FOLDER

FOLDER is `site/en/guide/migrate` of https://github.com/tensorflow/docs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

DEADLINE_SECS = 280
# What is downloaded, and what belongs to the cells of TensorFlow 2.
_REPLACED = {
    "https://storage.googleapis.com/tf-datasets/titanic/": "{folder}/",
    "https://storage.googleapis.com/download.tensorflow.org/models/": "file://{folder}/",
    "import tensorflow_datasets as tfds": "import made_up as tfds",
    "import tensorflow_decision_forests as tfdf": "",
    "load_tf1('tf2-save', 5.)": "",
    "load_tf1('keras-model', 5.)": "",
    "import tensorflow_recommenders as tfrs": "",
    "mnist.load_data()": (
        "[(data['x_' + part], data['y_' + part]) for data in [__import__('numpy').load("
        "'{folder}/mnist.npz')] for part in ('train', 'test')]"
    ),
}
# In place of tensorflow_datasets, which reads MNIST.
_MADE_UP = """
import os
import numpy as np
import tensorflow as tf


def load(name, split, shuffle_files=False, as_supervised=True):
    with np.load(os.path.join(os.path.dirname(__file__), name + ".npz")) as data:
        parts = data["x_" + split][..., None], data["y_" + split].astype(np.int64)
    return tf.data.Dataset.from_tensor_slices(parts)
"""
# In place of a MobileNet: the names and shapes that a cell asks for.
_FROZEN = """
import sys
import tensorflow.compat.v1 as tf1

with tf1.Graph().as_default() as graph:
    images = tf1.placeholder(tf1.float32, [1, 128, 128, 3], name="input")
    tf1.nn.softmax(tf1.reduce_mean(images, [1, 2]), name="MobilenetV1/Predictions/Softmax")
    tf1.io.write_graph(graph, sys.argv[1], "frozen_graph.pb", as_text=False)
"""
_ON_CPU = ", on the CPU"
_COLUMNS = "survived,sex,age,n_siblings_spouses,parch,fare,class,deck,embark_town,alone"


class Notebook(NamedTuple):
    """A notebook, its cells of TensorFlow 1.x with those that prepare them, and what they need."""

    name: str
    cells: str
    missing: str = ""  # Why they do not run; empty if they do.
    where: str = ""  # Where they run, if they ask for something else.


NOTEBOOKS = (
    Notebook("canned_estimators", "6 8 9 11 15 16 23 24 32 33"),
    Notebook("checkpoint_saver", "5 6 8"),
    Notebook("early_stopping", "5 8 10"),
    Notebook("evaluator", "5 6 8 10"),
    Notebook("fault_tolerance", "7 8 10 12 14 16"),
    Notebook("logging_stop_hook", "5 6 9"),
    Notebook("metrics_optimizers", "5 7 9 10 12"),
    Notebook("migrating_checkpoints", "6 8 17 24 26 30 32 34 38 48 50"),
    Notebook("migrating_estimator", "5 6 8 10 12"),
    Notebook("migrating_feature_columns", "4 6 8 10 14 19 24 28 33 37 41 45 47 49 51"),
    Notebook("migration_debugging", "8 11 13 15 17"),
    Notebook("mirrored_strategy", "6 7 10"),
    Notebook("multi_worker_cpu_gpu_training", "6 7 9 11 14"),
    Notebook("saved_model", "5 8 11 14 25 33 35"),
    Notebook("sessionrunhook_callback", "5 6 8 9"),
    Notebook("tensorboard", "5 6 8"),
    Notebook("tflite", "7 9 12 17 22"),
    Notebook("tpu_embedding", "6 8 11 13 15 17 19 20 22 24", where=_ON_CPU),
    Notebook("tpu_estimator", "5 6 9 11 12 14 16", where=_ON_CPU),
    Notebook("validate_correctness", "9 44 50"),
)


def write(guide: Path, notebook: Notebook, folder: Path) -> Path:
    """Writes a notebook with these cells, and the data that they download."""
    content = json.loads((guide / f"{notebook.name}.ipynb").read_text("utf-8"))
    cells = [content["cells"][int(number)] for number in notebook.cells.split()]
    for cell in cells:
        cell["source"] = "".join(cell["source"])
        for text, other in _REPLACED.items():
            cell["source"] = cell["source"].replace(text, other.format(folder=folder))
    path = folder / f"{notebook.name}.ipynb"
    path.write_text(json.dumps({**content, "cells": cells}), encoding="utf-8")
    numbers = np.random.RandomState(0)
    words = ["female", "Third", "C", "Southampton"]
    for name in ("train.csv", "eval.csv"):
        rows = [f"{i % 2},{words[0]},{20 + i},1,0,7.5,{','.join(words[1:])},n" for i in range(64)]
        (folder / name).write_text("\n".join([_COLUMNS, *rows]), encoding="utf-8")
    arrays = {}
    for part in ("train", "test"):
        arrays[f"x_{part}"] = numbers.randint(0, 256, (640, 28, 28)).astype(np.uint8)
        arrays[f"y_{part}"] = numbers.randint(0, 10, 640).astype(np.uint8)
    np.savez(str(folder / "mnist.npz"), **arrays)
    (folder / "made_up.py").write_text(_MADE_UP, encoding="utf-8")
    if "mobilenet" in path.read_text("utf-8"):
        model = folder / "mobilenet_v1_0.25_128"
        subprocess.run([sys.executable, "-c", _FROZEN, str(model)], check=True)
        with tarfile.open(str(folder / f"{model.name}_frozen.tgz"), "w:gz") as archive:
            archive.add(str(model), model.name)
    return path


def run(guide: Path, notebook: Notebook, folder: Path) -> tuple[int, str]:
    """Runs a notebook's cells by `compat run`; returns the exit code and the last line."""
    path = write(guide, notebook, folder)
    env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", TMPDIR=str(folder), HOME=str(folder))
    done = subprocess.run(
        [sys.executable, "-m", "compat", "run", str(path)],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=DEADLINE_SECS,
    )
    text = done.stdout.decode("utf-8", "replace")
    (folder / "said").write_text(text, encoding="utf-8")
    return done.returncode, (text.strip().splitlines() or [""])[-1]


def line(notebook: Notebook) -> str:
    """Returns the row of the table."""
    cells = len(notebook.cells.split())
    return f"| `{notebook.name}` | {cells} | {notebook.missing or f'runs{notebook.where}'} |"


def main(guide: Path) -> None:
    for notebook in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            code, last = run(guide, notebook, Path(folder))
        cells = len(notebook.cells.split())
        print(f"| `{notebook.name}` | {cells} | {last if code else 'runs'} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
