"""The package's public face."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import experiments
from compat import datasets
from compat.errors import UserError

ROOT = Path(experiments.__file__).resolve().parents[1]


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ("sklearn", "scipy", "tqdm", "tensorflow", "mlflow")
    code = f"import sys, compat.datasets; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=str(ROOT), timeout=60, check=True
    )
    assert done.stdout.strip() == b"[]"


def test_an_unknown_name_is_refused() -> None:
    sentence = (
        "^data set 'cifar10' is unknown, expected one of mnist, fashion_mnist, digits, auto; "
        "give another --dataset$"
    )
    with pytest.raises(UserError, match=sentence):
        datasets.load("cifar10")
