"""Names of Python's library, of NumPy and of other packages that are gone, as scripts use them."""

from __future__ import annotations

import collections
import importlib.util
import runpy
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from compat.scripts.names import packages
from compat.scripts.rules.sources import check
from compat.scripts.view import libraries

if TYPE_CHECKING:
    from tests.compat.scripts.conftest import RunScript

pytestmark = pytest.mark.once
GROUPS = runpy.run_path(str(Path(__file__).with_name("library_habits.py")))["GROUPS"]


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_packages_have_what_they_had(group: str, run_script: RunScript, tmp_path: Path) -> None:
    if group != "python":
        pytest.importorskip(group)
    set_up, *habits = GROUPS[group]
    lines = [textwrap.dedent(set_up)]
    for code, _ in habits:
        shown = code if "print(" in code else f"print({code})"
        lines += ["try:", f"    {shown}", "except Exception as error:"]
        lines += ["    print(type(error).__name__)"]
    (tmp_path / "sibling.py").write_text("import numpy as np")
    (tmp_path / "other.py").write_text("from numpy import *\nkind = bool")
    ran = run_script("\n".join(lines), options=("-u",))
    assert ran.code == 0, ran.err
    assert dict(zip((code for code, _ in habits), ran.out.splitlines())) == dict(habits)


def test_each_name_is_served() -> None:
    missing = []
    for name, served in packages.GONE.items():
        parent, _, last = name.rpartition(".")
        top = name.partition(".")[0]
        if top == "keras" or (parent and importlib.util.find_spec(top) is None):
            continue  # It changes TensorFlow in this process, or is not installed.
        try:
            if served.by.endswith(":"):
                libraries.module(name)
            elif served.by:
                getattr(libraries.module(parent), last)
        except (AttributeError, ImportError) as error:
            missing.append((name, error))
    assert missing == []


def test_check_reports_each_name(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    uses = [f"import {name.partition('.')[0]}; {name}" for name in packages.GONE]
    calls = [
        "np.histogram(x, normed=True)",
        "np.histogram(x, density=True)",
        "sklearn.tree.DecisionTreeClassifier(max_features='auto', criterion='gini')",
        "tf.random.shuffle(x)",
    ]
    lines = ["import numpy as np, sklearn", "import tensorflow as tf", *uses, *calls]
    # Some of the names are of Python 2, whose programs are converted.
    path.write_text("\n    ".join(["if sys.version_info:", *lines]))
    found = {finding.name: finding.kind.name for finding in check(str(path))}
    assert found.pop("numpy.histogram") == "served"
    assert found.pop("sklearn.tree.DecisionTreeClassifier") == "served"
    assert found == {k: "served" if served.by else "fails" for k, served in packages.GONE.items()}


def test_what_is_gone_for_good_is_said_in_a_line(run_script: RunScript) -> None:
    pytest.importorskip("sklearn")
    ran = run_script(
        """
        try:
            from sklearn.datasets import fetch_mldata
        except ImportError:
            import sklearn.hmm
        """
    )
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "error: script.py:5: sklearn.hmm is gone since scikit-learn 0.17: the package hmmlearn is "
        "the successor\n"
    )


def test_packages_themselves_stay_as_they_are(run_script: RunScript) -> None:
    ran = run_script(
        """
        import sys
        import collections, numpy as np, time
        print(collections.Mapping, np.float, time.clock)
        real = [sys.modules[name] for name in ("collections", "numpy", "time")]
        print([name in vars(module) for name, module in zip(("Mapping", "float_", "clock"), real)])
        time.own = 3
        print(real[2].own)
        """
    )
    assert ran.code == 0, ran.err
    names = (("Mapping", collections), ("float_", np), ("clock", time))
    before = [name in vars(module) for name, module in names]
    assert ran.out.splitlines()[1:] == [str(before), "3"]
