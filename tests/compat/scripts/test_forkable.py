"""Which programs may be forked from a process that has loaded TensorFlow, by their source."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.scripts.clusters.forkable import survey

pytestmark = pytest.mark.once
LEVEL = {"TF_CPP_MIN_LOG_LEVEL": "3"}


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules beside the program; one uses TensorFlow, one changes what it reads."""
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    monkeypatch.setenv("TF_SET", "5")
    folder = tmp_path / "net"
    folder.mkdir()
    (folder / "__init__.py").write_text("from . import layers\n")
    (folder / "layers.py").write_text("import tensorflow as tf\n")
    (tmp_path / "plain.py").write_text("import os, net\nos.environ['HOME']\n")
    (tmp_path / "early.py").write_text("import os\nos.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'\n")


@pytest.mark.parametrize(
    ("source", "env"),
    [
        ("import tensorflow as tf", {}),
        ("from tensorflow.python import keras", {}),
        ("import os, plain", {}),
        ("def main():\n    import net.layers", {}),
        ("import experiments.mnist", {}),
        ("import tensorflow as tf\nprint 'of Python 2'", {}),
        ("import os, tensorflow\nconfig = os.environ['TF_CONFIG'], os.environ.get('TF_A')", {}),
        ("import os, tensorflow\nif 'TF_CONFIG' in os.environ: pass", {}),
        ("import os, tensorflow\nos.environ['CUDA_VISIBLE_DEVICES'] = ''", {}),
        ("import os\nos.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\nimport tensorflow", LEVEL),
        (
            "from os import environ\nenviron.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')\nimport net",
            LEVEL,
        ),
        ("import os\nos.environ.setdefault('TF_SET', '0')\nimport tensorflow", {"TF_SET": "5"}),
    ],
)
def test_a_program_that_may_be_forked(tmp_path: Path, source: str, env: dict[str, str]) -> None:
    (tmp_path / "train.py").write_text(source)
    found = survey(str(tmp_path / "train.py"))
    assert found is not None
    assert found.env == env


@pytest.mark.parametrize(
    "source",
    [
        "import json",  # It does not use TensorFlow.
        "import tensorflow as tf, early",
        "import tensorflow as tf\nfrom early import *",
        "import os, tensorflow\nos.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'",
        "import os, net\nos.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'",
        "import os\nos.environ['TF_LEVEL'] = str(3)\nimport tensorflow",
        "import os\nif True:\n    os.environ['TF_LEVEL'] = '3'\nimport tensorflow",
        "import os\nos.environ.update(TF_LEVEL='3')\nimport tensorflow",
        "import os\nos.putenv('TF_LEVEL', '3')\nimport tensorflow",
        "import os\nname = 'A'\nos.environ[name] = '3'\nimport tensorflow",
        "import os, tensorflow\nstart(os.environ)",
        "import tensorflow\nif",
    ],
)
def test_a_program_that_has_to_be_started_alone(tmp_path: Path, source: str) -> None:
    (tmp_path / "train.py").write_text(source)
    assert survey(str(tmp_path / "train.py")) is None


def test_only_the_own_package_of_an_installed_program_is_read(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (tmp_path / "net").rename(tmp_path / "mine")
    for name in ("mine", "early.py"):
        site.mkdir(exist_ok=True)
        (tmp_path / name).rename(site / name)
    (site / "mine" / "train.py").write_text("import early, mine.layers")
    found = survey(str(site / "mine" / "train.py"))
    assert found is not None
    assert found.imports == {"early", "tensorflow"}


def test_a_program_in_a_package(tmp_path: Path) -> None:
    """Of which `python -m` also runs what is around it."""
    path = tmp_path / "net" / "train.py"
    path.write_text("import json")
    assert survey(str(path)) is not None
    (tmp_path / "net" / "__init__.py").write_text("import early")
    assert survey(str(path)) is None
