"""The page about TensorBoard has a section and a picture for each tab that a training fills."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.conftest import PACKAGES

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LARGEST_BYTES = 120000
FEWEST_COLOURS = 20
HAS_TIME_SERIES = importlib.util.find_spec("tensorboard.plugins.metrics") is not None
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)

# Prints which tabs a TensorBoard has, and whether it shows them, when it has read the last point
# and, if that comes to be, shows those that are expected.
LISTING = """
import json, sys, time, urllib.request
from tensorboard import program

def get(path):
    with urllib.request.urlopen(address + "data/" + path, timeout=100) as answer:
        return json.load(answer)

board = program.TensorBoard()
board.configure(["", "--logdir", sys.argv[1], "--host=127.0.0.1", "--port=0"])
address = board.launch()
deadline = time.monotonic() + 100
while not any("test/cost" in tags for tags in get("plugin/scalars/tags").values()):
    assert time.monotonic() < deadline, "no test/cost within 100 s"
    time.sleep(0.2)
shown = {}
while time.monotonic() < deadline:  # Some tabs look for their data in the background.
    tabs = get("plugins_listing").items()
    before, shown = shown, {name.replace("_", ""): tab["enabled"] for name, tab in tabs}
    if shown == before and all(shown.get(tab, True) for tab in sys.argv[2:]):
        break
    time.sleep(2)
print(json.dumps(shown))
"""

# An experiment of two classes of images, to which the page's methods are added.
EXPERIMENT = """
import numpy as np

from compat import tf
from experiments import Experiment, run, split
from experiments.evaluation.metrics import *


class Page(Experiment):
    words = ["one", "two", "three"]

    def data(self):
        images = np.random.RandomState(1).randint(256, size=[60, 4, 4], dtype=np.uint8)
        return split({"images": images, "labels": images[:, 0, 0] // 128}, 0.2, 0.2)

    def build(self):
        self.weights = tf.Variable(np.zeros([16, 2], np.float32), name="weights")
        self.table = tf.Variable(np.eye(3, dtype=np.float32), name="table")

    def loss(self, batch, training):
        pixels = tf.cast(tf.reshape(batch["images"], [-1, 16]), tf.float32) / 255
        logits, labels = pixels @ self.weights, tf.cast(batch["labels"], tf.int32)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        outputs = {"labels": labels, "predictions": logits, "images": batch["images"]}
        return tf.reduce_mean(losses), outputs

%s
run(Page)
"""


def sections() -> dict[str, str]:
    """Returns the text of each section about a tab, by the name of the tab's plugin."""
    page = (DOCS / "tensorboard.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", page, flags=re.MULTILINE)[1:]
    found = {title.lower().replace(" ", ""): text for title, text in zip(parts[::2], parts[1::2])}
    return {title: text for title, text in found.items() if "![" in text}


def pictures(tab: str) -> list[str]:
    """Returns the links to the pictures of a tab's section."""
    return re.findall(r"!\[[^\]]+\]\((.+?)\)", sections()[tab])


def stems(folder: Path) -> set[str]:
    return {path.stem for path in folder.iterdir()}


def assert_shows_something(picture: Path) -> None:
    """Checks that it is a PNG of a page's size, and not of one colour."""
    with Image.open(picture) as image:
        assert image.format == "PNG"
        assert image.width >= 1000
        assert image.height >= 600
        assert len(image.convert("RGB").getcolors(1 << 24)) > FEWEST_COLOURS
    assert picture.stat().st_size < LARGEST_BYTES


def run(*command: str, seconds: float, **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, *command],
        env=dict(os.environ, PYTHONPATH=PACKAGES, **env),
        capture_output=True,
        timeout=seconds,
    )


@pytest.fixture(scope="module")
def logdir(locals_by_runtime: dict[str, Any], runtimes: list[str]) -> Path:
    """The log folder of a training that has ended."""
    training = locals_by_runtime[runtimes[-1]]
    assert training.code == 0, training.err
    return training.logdir


@pytest.mark.parametrize("tab", sorted(sections()))
def test_each_section_has_its_picture(tab: str) -> None:
    links = pictures(tab)
    assert links[0] == f"tensorboard/{tab}.png"
    for link in links:
        assert_shows_something(DOCS / link)


def test_no_picture_is_left_over() -> None:
    assert stems(DOCS / "tensorboard") == {
        Path(p).stem for tab in sections() for p in pictures(tab)
    }


@pytest.mark.long
def test_each_tab_that_a_training_fills_has_its_section(logdir: Path) -> None:
    done = run("-c", LISTING, str(logdir), *sections(), seconds=150)
    assert done.returncode == 0, done.stderr.decode()
    shown = json.loads(done.stdout.decode().splitlines()[-1])
    filled = {tab for tab, is_shown in shown.items() if is_shown}
    # The one of 1.15 has no Time Series.
    assert filled == set(sections()) & set(shown)


def test_pictures_of_an_experiment_of_ones_own(
    start: Any, empty_store: Path, record: Any, tmp_path: Path
) -> None:
    text = (DOCS / "tensorboard.md").read_text(encoding="utf-8")
    methods = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(methods) == 2
    program = tmp_path / "page.py"
    program.write_text(EXPERIMENT % "\n".join(methods), encoding="utf-8")
    training = start(
        "--epochs=1",
        "--batch_size=12",
        module="page",
        logdir=tmp_path / "run",
        files=[program, empty_store],
    )
    assert training.wait().code == 0, training.err
    tags = set(record(tmp_path / "run").points)
    assert {"validation/confusion", "validation/pr_curve", "validation/misclassified"} <= tags
    config = (tmp_path / "run" / "projector_config.pbtxt").read_text(encoding="utf-8")
    assert set(re.findall(r'tensor_name: "(.+)"', config)) >= {"last_layer", "words"}


def test_no_browser_is_said_in_one_line(tmp_path: Path) -> None:
    done = run(str(DOCS / "screenshots.py"), str(tmp_path), seconds=150, PATH="")
    assert done.returncode == 2
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("error: no browser on PATH; expected one of chromium, ")


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on PATH")
def test_a_folder_without_events_is_said_in_one_line(tmp_path: Path) -> None:
    done = run(str(DOCS / "screenshots.py"), str(tmp_path), seconds=150)
    assert done.returncode == 2
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"error: log folder {str(tmp_path)!r} holds no event files; give ")


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on PATH")
@pytest.mark.skipif(not HAS_TIME_SERIES, reason="no Time Series, which has a picture")
def test_pictures_are_made(logdir: Path, tmp_path: Path) -> None:
    done = run(str(DOCS / "screenshots.py"), str(logdir), f"--out={tmp_path}", seconds=280)
    assert done.returncode == 0, done.stderr.decode()
    assert stems(tmp_path) == stems(DOCS / "tensorboard")
    for picture in tmp_path.iterdir():
        assert_shows_something(picture)
