"""Scripts as Python programs: their files, arguments, children and versions; no TensorFlow here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.scripts.reading import conversion

if TYPE_CHECKING:
    from tests.compat.scripts.conftest import RunScript

pytestmark = pytest.mark.once


def test_a_script_sees_itself_as_python_shows_it(run_script: RunScript, tmp_path: Path) -> None:
    (tmp_path / "sibling.py").write_text("name = __name__\n")
    ran = run_script(
        """
        import os, sys
        import sibling
        print(__name__, os.path.basename(__file__), sys.argv[1:], sibling.name)
        print(os.path.realpath(sys.path[0]) == os.path.realpath(os.path.dirname(__file__)))
        print("tensorflow" in sys.modules)
        """,
        "--flag=a b",
        "x",
        name="a script über.py",
        alone=True,
    )
    assert ran.out.splitlines() == [
        "__main__ a script über.py ['--flag=a b', 'x'] sibling",
        "True",
        "False",
    ]
    assert (ran.code, ran.err) == (0, "")


def test_python_2_runs_converted_and_its_file_stays(run_script: RunScript, tmp_path: Path) -> None:
    text = (
        "import cPickle, Queue\n"
        "def halves(numbers):\n"
        "\tfor number in numbers:\n"
        "\t        yield number / 2\n"  # Two tabs, to Python 2.
        "print 'halves', list(halves(xrange(4))), 7 / 2, 7 / 2.0\n"
        "total = 7\n"
        "total /= 2\n"
        "print total, u'text'.decode('utf-8'), {1: 2}.has_key(1)\n"
        "print '6162'.decode('hex') == b'ab' == 'YWI='.decode('base64'), 'no'.decode('rot13')\n"
        "for key, value in {'a': 1}.iteritems(): print key, value\n"
        "try:\n    raise ValueError, 'wrong'\nexcept ValueError, error:\n    print error\n"
        "print cPickle.loads(cPickle.dumps([1])), isinstance(1L, long)\n"
    )
    (tmp_path / "old.py").write_text(text)
    ran = run_script(None, "old.py")
    assert ran.err == ""
    assert ran.out.splitlines() == [
        "halves [0, 0, 1, 1] 3 3.5",
        "3 text True",
        "True ab",
        "a 1",
        "wrong",
        "[1] True",
    ]
    assert (tmp_path / "old.py").read_text() == text


def test_true_division_stays_where_python_2_asked_for_it(run_script: RunScript) -> None:
    ran = run_script("from __future__ import division\nprint 7 / 2\n")
    assert ran.out == "3.5\n"


def test_python_2_imports_siblings_in_a_package(run_script: RunScript, tmp_path: Path) -> None:
    for name, text in (
        ("__init__", ""),  # Beside the script as well, whose folder is a package of others.
        ("package/__init__", "import part\nprint 'package', part.__name__\n"),
        ("package/part", "import json, string\nimport inner.leaf as leaf\nprint leaf.__name__\n"),
        ("package/string", "print 'own', __name__\n"),
        ("package/inner/__init__", ""),
        (
            "package/inner/leaf",
            "from __future__ import absolute_import\nimport string; string.digits",
        ),
        ("sibling", "name = __name__\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{name}.py").write_text(text)
    ran = run_script(
        "import package.part as part, sibling\nprint sibling.name, part.json.loads('1')\n"
    )
    assert ran.out.splitlines() == [
        "own package.string",
        "package.inner.leaf",
        "package package.part",
        "sibling 1",
    ]


def test_python_2_sorts_by_functions_and_leaves_arrays(run_script: RunScript) -> None:
    ran = run_script(
        """
        import numpy as np
        numbers, array = [1, 3, 2], np.array([[3, 1], [2, 9]])
        numbers.sort(lambda left, right: cmp(right, left))
        array.sort(0)
        array.sort(-1, kind='mergesort')
        print numbers, array.tolist(), sorted(numbers, cmp)
        """
    )
    assert ran.out == "[3, 2, 1] [[1, 2], [3, 9]] [1, 2, 3]\n"


def test_python_2_is_told_by_its_library(run_script: RunScript) -> None:
    old = "import sys, itertools\nreload(sys)\nsys.setdefaultencoding('utf-8')\nprint(7 / 2)\n"
    assert run_script(old).out == "3\n"
    both = old.replace("reload", "if sys.version_info[0] < 3: reload").replace("\nsys.s", "; sys.s")
    assert run_script(both).out == "3.5\n"


def test_a_notebook_runs_cell_by_cell(run_script: RunScript, tmp_path: Path) -> None:
    cells = [
        {"cell_type": "code", "source": ["%matplotlib inline\n", "!ls\n", "a = 1\n"]},
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["print(a + 1)\n", "1 / 0"]},
    ]
    (tmp_path / "notes.ipynb").write_text(json.dumps({"cells": cells}))
    ran = run_script(None, "notes.ipynb")
    assert (ran.code, ran.out) == (1, "2\n")
    assert 'File "notes.ipynb [cell 2]", line 2' in ran.err
    assert "    1 / 0\n" in ran.err


def test_a_module_and_a_line_of_code_run_as_well(run_script: RunScript, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys\nprint(__name__, sys.argv[1:])\n")
    assert run_script(None, "-m", "program", "x").out == "__main__ ['x']\n"
    assert run_script(None, "-c", "import sys; print(sys.argv)", "x").out == "['-c', 'x']\n"
    for name, text in (
        ("__init__", ""),
        ("__main__", "from . import task; print(task.__name__)"),
        ("task", "import sub; from .sub import value; print(__name__, value, sub.__name__)"),
        ("sub", "value = 3"),
    ):
        (tmp_path / "trainer").mkdir(exist_ok=True)
        (tmp_path / "trainer" / f"{name}.py").write_text(text)
    assert run_script(None, "-m", "trainer.task").out == "__main__ 3 trainer.sub\n"
    assert run_script(None, "-m", "trainer").out == "trainer.task 3 trainer.sub\ntrainer.task\n"
    assert "No module named trainer.none" in run_script(None, "-m", "trainer.none").err


def test_children_see_what_the_script_sees(run_script: RunScript, tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text("print 'child', 3 / 2\n")
    ran = run_script(
        """
        import multiprocessing, subprocess, sys
        def work(queue):
            import numpy as np
            queue.put(np.int(3))
        if __name__ == "__main__":
            subprocess.check_call([sys.executable, "child.py"])
            queue = multiprocessing.Queue()
            process = multiprocessing.Process(target=work, args=(queue,))
            process.start()
            print(queue.get())
            process.join()
        """
    )
    assert ran.err == ""
    assert ran.out.splitlines() == ["child 1", "3"]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_children_that_are_not_forked_see_it_too(run_script: RunScript, method: str) -> None:
    ran = run_script(
        f"""
        import multiprocessing
        import numpy as np
        number = np.int(3)  # NumPy has no such name any more.
        def work(queue):
            queue.put((__name__, number))
        if __name__ == "__main__":
            multiprocessing.set_start_method({method!r})
            queue = multiprocessing.Queue()
            process = multiprocessing.Process(target=work, args=(queue,))
            process.start()
            print(queue.get(timeout=60))
            process.join()
        """
    )
    assert (ran.code, ran.out, ran.err) == (0, "('__mp_main__', 3)\n", "")


def test_numpy_has_the_names_that_it_had(run_script: RunScript) -> None:
    ran = run_script(
        """
        import numpy as np
        from numpy import float as number
        print(np.int, np.bool, number, np.product([2, 3]), np.asscalar(np.array([4])))
        print(np.zeros(1, np.float).dtype, np.Inf)
        """
    )
    assert ran.err == ""
    assert ran.out.splitlines() == [
        "<class 'int'> <class 'bool'> <class 'float'> 6 4",
        "float64 inf",
    ]


def test_exit_codes_are_the_scripts(run_script: RunScript) -> None:
    assert run_script("import sys; sys.exit(7)").code == 7
    assert run_script("raise SystemExit").code == 0
    ended = run_script("import sys; sys.exit('no data')")
    assert (ended.code, ended.err) == (1, "no data\n")


def test_a_traceback_shows_the_scripts_lines_only(run_script: RunScript) -> None:
    ran = run_script("def f():\n    return undefined\n\nf()\n")
    assert ran.code == 1
    lines = ran.err.splitlines()
    assert [line for line in lines if "File" in line] == [
        '  File "script.py", line 4, in <module>',
        '  File "script.py", line 2, in f',
    ]
    assert lines[-1] == "NameError: name 'undefined' is not defined"


def test_what_is_no_program_is_said_in_a_line(run_script: RunScript, tmp_path: Path) -> None:
    (tmp_path / "picture.py").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "book.ipynb").write_text("[]")
    for arguments, said in (
        (["nowhere.py"], "error: script nowhere.py cannot be read (No such file or directory)"),
        (["picture.py"], "script picture.py is not text"),
        (["book.ipynb"], "notebook book.ipynb is not valid"),
        ([], "no script was given"),
    ):
        ran = run_script(None, *arguments)
        assert ran.code == 2
        assert said in ran.err
        assert ran.err.count("\n") == 1
    broken = run_script("def f(:\n    pass\n")
    assert broken.code == 2
    assert broken.err.startswith("error: script.py:1: neither Python 3 nor Python 2")


def test_the_command_explains_itself(run_script: RunScript) -> None:
    ran = run_script(None, "--help")
    assert ran.code == 0
    for option in ("--cluster", "--era", "--hosts", "--local", "--track", "--data_dir"):
        assert option in ran.out
    said = " ".join(ran.out.split())
    assert "with your permissions, as with `python SCRIPT`. It downloads only the files" in said


def test_names_of_six_are_of_both_pythons() -> None:
    text = "import six\n\nfor name, value in {}.items():\n    print(name, value)\n"
    assert not conversion.is_python2(text.replace("{}.items()", "six.iteritems({})"))
    assert conversion.is_python2(text.replace("items", "iteritems"))


@pytest.mark.parametrize(
    ("text", "is_old"),
    [
        ("layers = map(int, '1,2'.split(','))\nprint(len(layers))\n", True),
        ("def f(x):\n    layers = map(int, x)\n    return layers[0]\n", True),
        ("print(zip([1], [2])[0])\n", True),
        ("units = map(int, '12')\ntf.estimator.DNNClassifier(hidden_units=units)\n", True),
        ("import random\norder = range(9)\nrandom.shuffle(order)\n", True),
        ("places = range(9)\ndel places[4]\n", True),
        ("places = range(9)\nplaces.remove(4)\n", True),
        ("print(range(2) + [4], range(2) + range(3))\n", True),
        ("import numpy as np\nprint(range(2) + np.arange(2), {}.pop(1, 2))\n", False),
        ("layers = list(map(int, '12'))\nprint(len(layers), range(9)[2], len(range(9)))\n", False),
        ("layers = map(int, '12')\nlayers = list(layers)\nprint(len(layers))\n", False),
        ("def f(x):\n    print(len(x))\n    x = map(int, x)\n    return list(x)\n", False),
        ("from past.builtins import map\nprint(len(map(int, '12')))\n", False),
    ],
)
def test_lists_of_builtins_are_of_python_2(text: str, is_old: bool) -> None:
    assert conversion.is_python2(text) == is_old


def test_a_list_of_map_is_one(run_script: RunScript) -> None:
    ran = run_script("sizes = map(int, '4,2'.split(','))\nprint(len(sizes) + sizes[1])\n")
    assert (ran.code, ran.out) == (0, "4\n")
