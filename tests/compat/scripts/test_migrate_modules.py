"""`python -m compat migrate`, also with `--to=compat`, of scripts with modules."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from compat.errors import UserError
from compat.scripts.commands import check
from compat.scripts.commands.migrate import main
from compat.scripts.proving import migrated
from tests.compat.scripts.conftest import run_python

pytest.importorskip("asttokens")
pytest.importorskip("fissix")
pytestmark = pytest.mark.once
MODEL = '''
import math
import tensorflow as tf
import sizes

RATE = 0.9


def inference(x):
    w = tf.get_variable("w", [sizes.INPUTS, 8], initializer=tf.constant_initializer(0.1))
    v = tf.get_variable("v", [8, 1], initializer=tf.constant_initializer(1 / math.sqrt(8)))
    return tf.mul(tf.matmul(tf.nn.relu(tf.matmul(x, w)), v), 1.0)


def train(loss, learning_rate=0.1):
    """Makes the update."""
    step = tf.Variable(0, trainable=False)
    rate = tf.train.exponential_decay(learning_rate, step, 10, 0.5)
    optimizer = tf.train.MomentumOptimizer(rate, RATE)
    return optimizer.minimize(loss, global_step=step)
'''
SCRIPT = """
import numpy as np
import tensorflow as tf
from model import inference, train


def inputs(size):
    x = tf.placeholder(tf.float32, [None, size], name="x")
    return x, tf.placeholder(tf.float32, [None, 1], name="y")


x, y = inputs(4)
output = inference(x)
loss = tf.reduce_mean(tf.square(output - y))
train_op = train(loss, 0.01)


def fill(size, inputs, targets):
    batch = np.random.rand(size, 4)
    feed = {inputs: batch, targets: batch.sum(1, keepdims=True)}
    return feed


def main():
    with tf.Session() as sess:
        sess.run(tf.initialize_all_variables())
        for step in range(20):
            feed = fill(16, x, y)
            _, value = sess.run([train_op, loss], feed_dict=feed)


if __name__ == "__main__":
    main()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script that imports a module of TensorFlow 0.x, which imports one without TensorFlow."""
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "sizes.py").write_text("INPUTS = 4\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_module_is_migrated_beside_the_new_program(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--to=compat", "train.py"]) == 0
    assert "\nwrote model_v1.py\n" in capsys.readouterr().out
    names = ["model.py", "model_v1.py", "sizes.py", "train.py", "train_compat.py"]
    assert sorted(path.name for path in project.iterdir()) == names
    new = (project / "model_v1.py").read_text(encoding="utf-8")
    assert "import compat.v1 as tf\nimport sizes\n" in new
    assert "tf.multiply(" in new
    made = (project / "train_compat.py").read_text(encoding="utf-8")
    assert "from model_v1 import inference, train\n" in made
    # As it is, a module is written once; a changed one is left.
    assert main(["--to=compat", "--output=again.py", "train.py"]) == 0
    (project / "model_v1.py").write_text(new + "RATE = 0.8\n", encoding="utf-8")
    os.remove("train_compat.py")
    capsys.readouterr()
    with pytest.raises(UserError, match="model_v1.py exists, and is not what model.py becomes"):
        main(["--to=compat", "train.py"])
    assert not (project / "train_compat.py").exists()
    main(["--to=compat", "--output=new/train.py", "train.py"])
    assert sorted(os.listdir("new")) == ["model_v1.py", "sizes.py", "train.py"]
    (project / "sizes.py").write_text("INPUTS = 4\nprint INPUTS\n", encoding="utf-8")
    assert main(["--to=compat", "--output=older/train.py", "train.py"]) == 0
    assert "print(INPUTS)\n" in (project / "older" / "sizes_v1.py").read_text(encoding="utf-8")
    # A module that imports a changed one is another one as well.
    (project / "sizes.py").write_text("import model\nINPUTS = 4\n", encoding="utf-8")
    assert main(["--to=compat", "--output=last/train.py", "train.py"]) == 0
    text = (project / "last" / "sizes_v1.py").read_text(encoding="utf-8")
    assert text == "import model_v1 as model\nINPUTS = 4\n"


@pytest.mark.long
def test_a_module_has_sizes_of_shapes_on_either_runtime(project: Path, runtime: str) -> None:
    text = MODEL.replace("[sizes.INPUTS, 8]", "[x.get_shape()[1].value, 8]")
    (project / "model.py").write_text(text, encoding="utf-8")
    assert main(["--to=compat", "train.py"]) == 0
    done = run_python("train_compat.py", f"--runtime={runtime}", cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_folder_is_migrated_with_modules_that_name_no_tensorflow(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "plots.py").write_text(
        "from scipy.misc import imsave\nimport matplotlib.pyplot as plt\n"
        "colours = plt.cm.get_cmap('jet')\n"
    )
    (project / "main.py").write_text("from train import *\nimport plots\nprint 'done', x\n")
    (project / "other.py").write_text("print 'alone'\n")
    assert main([".", "--output=new"]) == 1
    assert "new/other.py:1: remark 1: it is not written in Python 3" in capsys.readouterr().out
    new = {path.name: path.read_text() for path in (project / "new").iterdir()}
    assert new["plots.py"].startswith("from compat.v1.packages.scipy.misc import imsave\n")
    assert "import compat.v1.packages.matplotlib.pyplot as plt\n" in new["plots.py"]
    assert new["main.py"].endswith("print('done', x)\n")
    assert new["other.py"] == "print 'alone'\n"


def test_a_script_in_a_folder_that_is_a_package_imports_its_modules(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "__init__.py").write_text("")
    (project / "sizes.py").write_text("import more\nprint 'sizes'\nINPUTS = more.INPUTS\n")
    (project / "more.py").write_text("INPUTS = 4\n")
    text = "import tensorflow as tf\nimport sizes\nif __name__ == '__main__':\n    print 'rows',"
    (project / "rows.py").write_text(f"{text} tf.reduce_sum(sizes.INPUTS).get_shape()\n")
    assert main([".", "--output=new"]) == 0, capsys.readouterr()
    done = run_python("new/rows.py", cwd=project)
    assert done.stdout.split() == ["sizes", "rows", "()"], done.stderr


def test_what_cannot_be_read_is_left_out_of_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    broken = {
        "syntax.py": b"import tensorflow\nx = = 1\n",
        "bytes.py": b"import tensorflow as tf\nx = '\0'\n",
    }
    for name, text in broken.items():
        (old / name).write_bytes(text)
    with pytest.raises(UserError, match="no script in .*old can be migrated"):
        main([str(old), f"--output={new}"])
    assert not new.exists()
    (old / "model.py").write_text("import tensorflow as tf\nx = tf.neg(1)\n")
    (old / "train.py").write_text("import tensorflow as tf\nimport model, syntax\n")
    capsys.readouterr()
    assert main([str(old), f"--output={new}"]) == 2
    said = capsys.readouterr().out.splitlines()
    for name in broken:
        (line,) = [line for line in said if str(old / name) in line]
        assert line.endswith("; it is left out")
    assert sorted(os.listdir(new)) == ["model.py", "train.py"]
    assert (new / "model.py").read_text() == "import compat.v1 as tf\nx = tf.negative(1)\n"
    assert check.main([str(old)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert {os.path.basename(line.split(":")[0]) for line in said if "[unreadable]" in line} == {
        *broken
    }
    assert any(line.startswith(f"{old / 'model.py'}:") for line in said)


@pytest.mark.slow
def test_it_is_proven(project: Path) -> None:
    done = run_python("-m", "compat", "migrate", "--to=compat", "--prove", "train.py")
    assert re.search("equal: 20 losses of 20 training calls; .* difference 0,", done.stdout), done


def test_what_is_left_to_do_by_hand_is_in_the_exit_code(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also what is left in a module."""
    left = MODEL.replace("    w =", "    tf.contrib.ffmpeg.decode_audio(x)\n    w =")
    (project / "model.py").write_text(left, encoding="utf-8")
    assert main(["--to=compat", "train.py"]) == 1
    assert re.search(r"(?m)^model_v1.py:\d+: remark 1: ", capsys.readouterr().out)


def test_modules_by_the_name_of_the_package_that_the_script_is_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `python -m trainer.task`, or with the folder above it on PYTHONPATH."""
    folder = tmp_path / "trainer"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "sizes.py").write_text("INPUTS = 4\n")
    (folder / "model.py").write_text(MODEL.replace("import sizes", "from trainer import sizes"))
    script = folder / "task.py"
    script.write_text(SCRIPT.replace("from model", "from trainer.model"))
    assert main([str(script)]) == 1
    assert f"compat prove {script}\n" in capsys.readouterr().out  # Which migrates the modules.
    assert "# compat 1: model.py has to be migrated as well" in (folder / "task_v1.py").read_text()
    (folder / "task_v1.py").unlink()
    assert main(["--to=compat", str(script)]) == 0
    assert "trainer.model_v1 import" in (folder / "task_compat.py").read_text()
    ran = run_python("-m", "trainer.task_compat", cwd=tmp_path, seconds=120)
    assert ran.returncode == 0, ran.stderr


def test_all_names_of_a_package_that_compat_has_may_be_imported(tmp_path: Path) -> None:
    """As those of `tf.contrib.seq2seq`, which here is a folder."""
    script = tmp_path / "old.py"
    script.write_text(
        "import tensorflow as tf\nfrom tensorflow.contrib.seq2seq import *\n"
        "x = tf.placeholder(tf.float32, [None], name='x')\n"
        "loss = tf.reduce_mean(tf.square(x * tf.Variable(1.0)))\n"
        "train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)\n"
        "with tf.Session() as session:\n"
        "    session.run(tf.global_variables_initializer())\n"
        "    print(session.run([train, loss], {x: [1.0]}))\n",
        encoding="utf-8",
    )
    assert main(["--to=compat", str(script)]) == 0
    text = (tmp_path / "old_compat.py").read_text(encoding="utf-8")
    assert "from compat.v1.contrib.seq2seq import *\n" in text


def test_modules_without_tensorflow_are_migrated_for_a_proof(tmp_path: Path) -> None:
    """Or the migrated program could not import them: they are in Python 2."""
    script = tmp_path / "old.py"
    script.write_text("import tensorflow as tf\nimport reader\nprint reader.x, tf.mul(2, 3)\n")
    (tmp_path / "reader.py").write_text("x = 7\nprint 'read'\n")
    (tmp_path / "data.txt").write_text("1")
    new = Path(migrated.write(str(script), str(tmp_path / "new")))
    assert "print(reader.x, tf.multiply(2, 3))" in new.read_text()
    assert "x = 7\nprint('read')" in (new.parent / "reader.py").read_text()
    assert (new.parent / "data.txt").read_text() == "1"
