"""`python -m compat migrate`: what it writes, what it leaves, how it ends."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path

import pytest

from compat.errors import UserError
from compat.scripts.commands.migrate import main
from compat.scripts.migrating import migration
from compat.scripts.reading import conversion
from compat.scripts.rules import sources
from compat.scripts.rules.catalog import RULES
from compat.scripts.rules.rule import Rule
from tests.compat.scripts.conftest import run_python

pytest.importorskip("asttokens")
pytest.importorskip("fissix")
pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[3]
OLD = "import tensorflow as tf\n"
NEW = "import compat.v1 as tf\n"
GONE = "tf.contrib.ffmpeg.decode_audio(x)\n"


def migrated(text: str, filename: str = "old.py") -> migration.Migrated:
    return migration.migrate(conversion.from_text(text, filename), RULES)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.id))
def test_rule_does_what_it_shows(rule: Rule, tmp_path: Path) -> None:
    write(tmp_path / "reader.py", OLD)
    path = write(tmp_path / "old.py", f"{OLD}{rule.before}\n")
    if rule.id != "modules":  # A check reads them all.
        assert rule.id in {finding.rule for finding in sources.check(str(path))}
    found = migrated(f"{OLD}{rule.before}\n", str(path))
    head = "from compat.v1 import python2\n" if rule.gone == "Python 3" else ""
    assert found.text == f"{head}{NEW}{rule.after or rule.before}\n"
    assert (rule.id in found.counts) == bool(rule.after)
    again = migrated(found.text)
    assert (again.text, again.is_changed, again.remarks) == (found.text, False, found.remarks)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import tensorflow", "import compat.v1 as tensorflow"),
        (
            "import os, tensorflow.contrib.slim as slim, tensorflow_transform as t, sys",
            "import os, compat.v1.contrib.slim as slim, tensorflow_transform as t, sys",
        ),
        ("import tensorflow.contrib.slim", "import compat.v1 as tensorflow"),
        (
            "from tensorflow import (\n    nn as n,  # nets\n)",
            "from compat.v1 import (\n    nn as n,  # nets\n)",
        ),
        ("from tensorflow import *\nx = mul(1, 2)", "from compat.v1 import *\nx = multiply(1, 2)"),
        (
            "import importlib\ntf = importlib.import_module('tensorflow.contrib')",
            "import importlib\ntf = importlib.import_module('compat.v1.contrib')",
        ),
        (
            "import numpy as np, tensorflow as tf\nx = np.float(1)",
            "import compat.v1.packages.numpy as np, compat.v1 as tf\nx = np.float(1)",
        ),
        (
            f"{OLD}import os, time\nimport scipy.misc\nscipy.misc.imread(time.clock())",
            f"{NEW}import os, compat.v1.packages.time as time\n"
            "import compat.v1.packages.scipy as scipy\nscipy.misc.imread(time.clock())",
        ),
        (
            "def f():\n\tif x: import tensorflow as tf; return tf.neg( (x) ) # é",
            "def f():\n\tif x: import compat.v1 as tf; return tf.negative( (x) ) # é",
        ),
        (
            f"{OLD}y = tf.concat((1), (\n  [x]  # one\n))",
            f"{NEW}y = tf.concat(axis=(1), values=(\n  [x]  # one\n))",
        ),
        (f"{OLD}'é', tf.concat(concat_dim = 1)", f"{NEW}'é', tf.concat(axis = 1)"),
        (f"{OLD}y = tf . mul(tf.mul(1, 2), 3)", f"{NEW}y = tf . mul(tf.mul(1, 2), 3)"),
        ("from tensorflow.compat import v1\nv1.pack", "from compat.v1.compat import v1\nv1.stack"),
        ("import tensorflow as tf\ntf.app.run(tf.compat.v1.f)", f"{NEW}tf.app.run(tf.compat.v1.f)"),
        (f"{OLD}tf.sparse_split(0, 2)", f"{NEW}tf.sparse_split(axis=0, num_split=2)"),
    ],
)
def test_layout_stays(old: str, new: str) -> None:
    found = migrated(old + "\n")
    assert found.text == new + "\n"
    assert found.remarks == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = 'tensorflow'\n",
        "import tensorflow_hub\n",
        "import compat.v1 as tf\nfrom tensorflow.contrib import ffmpeg\n",
        "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\ntf.Session()\n",
        "import tensorflow as tf\nx = tf.compat.v1.placeholder('float')\n",
    ],
)
def test_nothing_to_do_changes_nothing(text: str, tmp_path: Path) -> None:
    path = write(tmp_path / "old.py", text)
    assert main([str(path)]) == 0
    assert os.listdir(tmp_path) == ["old.py"]


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        ("tf.concat(a, b)", "concat"),
        ("tf.split(*a)", "split"),
        ("tf.nn.softmax_cross_entropy_with_logits(*a)", "losses"),
        ("tf.image.resize_images(a, height, width)", "sizes"),
    ],
)
def test_rule_that_cannot_rewrite_all_leaves_all(call: str, rule: str) -> None:
    known = next(r.before for r in RULES if r.id == rule)
    found = migrated(f"{OLD}{known}\n{call}\n")
    assert found.text == f"{NEW}{known}\n{call}\n"
    assert [line for line, _ in found.left] == [3]
    assert f"rule {rule} left the file: " in found.left[0][1]
    assert found.remarks == []


def test_formatted_strings_are_left() -> None:
    """Not every Python knows where the names in them are."""
    text = 'if x:\n    y = f"""\n{tf.mul(1, 2)} {tf.contrib.ffmpeg.x}"""\n'
    found = migrated(OLD + text)
    assert re.sub(r"(?m)^ +# compat 1: tf.contrib.ffmpeg.x .*\n", "", found.text) == NEW + text
    assert [line for line, _ in found.remarks] == [3]
    assert [why.split(":")[0] for _, why in found.left] == ["rule renamed left the file"]


def test_python_2_keeps_its_meaning() -> None:
    old = (
        "# old\nfrom tensorflow.contrib import ffmpeg\nimport tensorflow as tf, pickle\n"
        "a = b = 6\na /= b / 4  # less\nprint 'x', (a + b) / a / 2.0, tf.__version__, file('x')\n"
        "c = (a or b).decode() / 2\ntf.pack([a])\n"
    )
    found = migrated(old)
    assert found.text == (
        "# old\n"
        "from compat.v1 import python2\n"
        "from compat.v1 import era_0x  # As before TensorFlow 1.0, for what depends on it.\n"
        "# compat 1: tf.contrib.ffmpeg is gone since TensorFlow 2.0: TensorFlow removed its "
        "kernels; run the script on its original TensorFlow, or remove it\n"
        "from tensorflow.contrib import ffmpeg\n"
        "import compat.v1 as tf, compat.v1.packages.pickle as pickle\n"
        "a = b = 6\n"
        "a = python2.divide(a, python2.divide(b, 4))  # less\n"
        "print('x', python2.divide((a + b), a) / 2.0, tf.__version__, python2.file('x'))\n"
        "c = python2.divide(python2.decode((a or b)), 2)\n"
        "tf.stack([a])\n"
    )
    assert (
        migrated(old.replace("# old", "from __future__ import division")).text.count("divide") == 0
    )


def test_python_2_without_tensorflow_is_said(tmp_path: Path) -> None:
    found = migrated("print 'x'\n")
    assert (found.text, found.is_changed) == ("print 'x'\n", False)
    assert [why.split(";")[1] for _, why in found.remarks] == [
        " convert it, for example by fissix -w"
    ]
    write(tmp_path / "reader.py", "print 'x'\n")
    found = migrated(f"{OLD}import reader\n", str(tmp_path / "old.py"))
    assert [line for line, _ in found.remarks] == [2]


def test_name_of_ours_in_use_is_refused() -> None:
    with pytest.raises(UserError, match="has a name 'python2', which .*; rename it"):
        migrated(f"{OLD}python2 = 1\nprint 'x'\n")


def test_file_stays_and_a_new_one_is_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.py"
    path.write_bytes(
        b"# coding: latin-1\r\nimport tensorflow as tf\r\nx = tf.neg('\xe4')\r\n" + GONE.encode()
    )
    raw = path.read_bytes()
    assert main([str(path)]) == 1
    new = (tmp_path / "old_v1.py").read_bytes().decode("utf-8").split("\r\n")
    assert new[:3] == ["# coding: utf-8", "import compat.v1 as tf", "x = tf.negative('ä')"]
    assert new[3].startswith("# compat 1: tf.contrib.ffmpeg.decode_audio is gone since")
    out = capsys.readouterr().out.splitlines()
    assert out[0] == f"{path}: imports 1, renamed 1, unserved 1"
    assert out[1].startswith(
        f"{tmp_path / 'old_v1.py'}:4: remark 1: tf.contrib.ffmpeg.decode_audio"
    )
    with pytest.raises(UserError, match=r"old_v1\.py exists; name a new one"):
        main([str(path)])
    assert main([str(path), f"--output={tmp_path / 'new.py'}", "--skip=unserved,renamed"]) == 0
    expected = raw.replace(b"latin-1", b"utf-8").replace(b"\xe4", "ä".encode())
    expected = expected.replace(b"import tensorflow", b"import compat.v1")
    assert (tmp_path / "new.py").read_bytes().replace(b"\r", b"") == expected.replace(b"\r", b"")
    assert path.read_bytes() == raw


def test_diff_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "old.py", f"{OLD}x = tf.neg(1)\n")
    assert main([str(path), "--diff", "--only=imports"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[-3:] == ["-" + OLD.strip(), "+" + NEW.strip(), " x = tf.neg(1)"]
    assert os.listdir(tmp_path) == ["old.py"]


def test_folder_is_migrated_as_a_whole(tmp_path: Path) -> None:
    for name, text in {
        "a.py": f"{OLD}from b import c\n",
        "b/c.py": OLD,
        "b/d.py": "x = 1\r\n",
    }.items():
        (tmp_path / "old" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "old" / name).write_bytes(text.encode())
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    with pytest.raises(UserError, match="is a folder; name a new one"):
        main([old])
    assert main([os.path.join(old, "a.py"), "--diff"]) == 1  # Its module needs it, too.
    assert main([old, f"--output={new}"]) == 0
    files = {str(p.relative_to(new)): p.read_bytes() for p in Path(new).rglob("*.py")}
    both = NEW.encode()
    assert files == {"a.py": both + b"from b import c\n", "b/c.py": both, "b/d.py": b"x = 1\r\n"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "no script was given; name a script"),
        (["nothing.py"], "cannot be read .*; name a Python file"),
        (["old.ipynb"], "is a notebook, expected a script; export it"),
        (
            ["old.py", "--only=imports,nothing"],
            "--only has 'nothing', expected rules among imports",
        ),
        (["old.py", "--skip="], "--skip has ''"),
        (["old.py", "--diff", "--output=x"], "not allowed with argument"),
        (["old.py", "--to=v2"], "invalid choice: 'v2'"),
    ],
)
def test_wrong_usage_is_said(
    args: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message):
        main(args)
    assert os.listdir(tmp_path) == []


def test_rules_are_listed_as_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list-rules"]) == 0
    listed = [line.split(maxsplit=1)[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == [rule.id for rule in RULES]
    tables = runpy.run_path(str(ROOT / "tests" / "conformance" / "__main__.py"))
    for name in ("migrate.md", "check.md"):
        page = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert tables["written"](page) == page, "run `make api`"


@pytest.mark.long
def test_page_shows_what_is_printed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "migrate.md").read_text(encoding="utf-8")
    old, new = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:2]
    said, printed = re.findall(r"```text\n(.*?)```", page, re.DOTALL)[:2]
    write(tmp_path / "train.py", old)
    monkeypatch.chdir(tmp_path)
    assert main(["train.py"]) == 1
    assert capsys.readouterr().out == said
    assert (tmp_path / "train_v1.py").read_text(encoding="utf-8") == new
    for command in (["train_v1.py"], ["-m", "compat", "run", "train.py"]):
        done = run_python(*command, "--steps=2", "--unknown")
        assert (done.returncode, done.stdout) == (0, printed), done.stderr
