"""`compat.v1`, the `tf` of migrated programs: what it shows, and to whom."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from compat.errors import UserError
from compat.scripts.migrating import migration
from compat.scripts.reading import conversion
from compat.scripts.rules.catalog import RULES
from tests.compat.scripts.conftest import run_python

pytestmark = pytest.mark.once
PROGRAM = """
import sys
from compat.v1 import python2
from compat.v1 import era_0x
import compat.v1 as tf
import compat.v1.packages.numpy as np, compat.v1.packages.pickle as pickle
from compat.v1.packages.sklearn.cross_validation import train_test_split
import compat.v1.packages.scipy as scipy, compat.v1.packages.time as time
print("tensorflow" in sys.modules, time.clock() > 0, scipy.linalg.det([[2]]))

from compat.v1 import *
import compat.v1.contrib.lookup as lookup
import compat.v1.examples.tutorials.mnist.input_data
from compat.v1.examples.tutorials.mnist import input_data as mnist
from compat.v1.python.platform import gfile, flags
from compat.v1.contrib import rnn

print(tf.__version__, multiply is tf.mul)
print(mnist.read_data_sets("", fake_data=True).train.next_batch(1)[1])
print(rnn.BasicLSTMCell.__module__.split(".")[0], flags.FLAGS is tf.flags.FLAGS, gfile.Exists("-"))
print(np.float, np.random.rand.__name__, train_test_split.__module__.split(".")[0])
print("Session" in dir(tf), lookup.__name__, len(dir(lookup)) > 3)
text = tf.constant("text")
with tf.Session() as session:
    print(session.run(text), python2.divide(7, 2), python2.decode("x", "utf-8"))
for name in ("nothing", "models.image.cifar10", "_private"):
    try:
        __import__("compat.v1." + name)
    except ImportError as error:
        print(str(error).split(";")[0])
try:
    from compat.v1.models.image import cifar10
except ImportError as error:
    print(str(error).split(";")[0])
try:
    tf.train.Server({"ps": ["192.0.2.1:2222"]})
except ValueError as error:
    print(str(error).split(";")[-1])
"""
PRINTED = """\
False True 2.0
0.12.1 True
[0]
compat True False
<class 'float'> rand sklearn
True compat.v1.contrib.lookup True
text 3 x
No module named 'tensorflow.nothing'
tf.models.image.cifar10 is not known here: nothing serves it here
No module named 'compat.v1._private'
tf.models.image.cifar10 is not known here: nothing serves it here
 for a migrated program set COMPAT_RUN_ALLOW_NETWORK=1 (docs/security.md)
"""


@pytest.mark.parametrize("command", [[], ["-m", "compat", "run"]], ids=["python", "compat run"])
def test_program_sees_what_a_script_does(command: list[str], tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = run_python(*command, str(program))
    assert (done.returncode, done.stdout) == (0, PRINTED), done.stderr


def test_sessions_return_text_where_tensorflow_was_loaded_before(tmp_path: Path) -> None:
    """As by `compat.select_runtime` under `compat prove`."""
    program = tmp_path / "program.py"
    program.write_text(
        "import compat.v1 as tf\ntf.Session\nfrom compat.v1 import python2\n"
        "print(tf.Session().run(tf.constant('a b')).split(' '))\n",
        encoding="utf-8",
    )
    done = run_python(str(program))
    assert done.stdout == "['a', 'b']\n", done.stderr


@pytest.mark.parametrize(("package", "is_served"), [("numpy", False), ("scipy", True)])
def test_only_names_that_are_gone_need_a_package_of_its_own(package: str, is_served: bool) -> None:
    pytest.importorskip("asttokens")
    text = f"import tensorflow as tf\nimport {package}\nx = {package}.ones(2)\n"
    found = migration.migrate(conversion.from_text(text, "old.py"), RULES).text
    assert ("compat.v1.packages" in found) == is_served


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asttokens", None)  # As Python marks what it cannot import.
    with pytest.raises(UserError, match=r"^script old\.py cannot be rewritten, since the package"):
        migration.migrate(conversion.from_text("import tensorflow as tf\n", "old.py"), RULES)


@pytest.mark.parametrize("command", [["-m", "compat", "run"], []], ids=["run", "python"])
def test_a_program_has_a_folder_of_models(command: list[str], tmp_path: Path) -> None:
    """Which Python finds behind the package of that name, for want of an `__init__.py`."""
    (tmp_path / "models" / "nets").mkdir(parents=True)
    (tmp_path / "models" / "nets" / "small.py").write_text("SIZE = 3\n", encoding="utf-8")
    text = "import compat.v1 as tf\nfrom models.nets.small import SIZE\nprint(SIZE)\n"
    (tmp_path / "program.py").write_text(text, encoding="utf-8")
    done = run_python(*command, "program.py", cwd=tmp_path)
    assert done.stdout == "3\n", done.stderr


INSTALLED = """
import sys
sys.path.insert(0, "site-packages")
import tensorflow as tf
import made_elsewhere

data = made_elsewhere.load()
once = data.map(lambda x: x * 2).batch(3).make_one_shot_iterator().get_next()
again = data.batch(3).make_initializable_iterator()
value = again.get_next()
with tf.Session() as session:
    session.run(again.initializer)
    print(session.run(once))
    print(session.run(value))
print(data.output_types.name)
"""


@pytest.mark.long
def test_datasets_of_installed_packages_have_iterators(tmp_path: Path) -> None:
    """The package imports today's TensorFlow, before the program uses it."""
    package = tmp_path / "site-packages"
    package.mkdir()
    text = "import tensorflow as tf\n\n\ndef load():\n    return tf.data.Dataset.range(3)\n"
    (package / "made_elsewhere.py").write_text(text)
    (tmp_path / "old.py").write_text(INSTALLED)
    migrated = run_python("-m", "compat", "migrate", "old.py", cwd=tmp_path)
    assert migrated.returncode == 0, migrated.stdout + migrated.stderr
    new = (tmp_path / "old_v1.py").read_text()
    assert "import compat.v1 as tf\ntf.disable_v2_behavior()  # Before another" in new
    for command in (["old_v1.py"], ["-m", "compat", "run", "old.py"]):
        ran = run_python(*command, cwd=tmp_path)
        assert ran.stdout.splitlines() == ["[0 2 4]", "[0 1 2]", "int64"], ran.stderr
