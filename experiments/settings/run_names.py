"""What an experiment and a run may be called, said before anything is written.

MLflow refuses little of it at once: a name reaches the store while the training runs already, and
a database that counts characters refuses it then. Nothing here makes a path of a name, but pages,
exports and stores of plain folders do.

Example:
  >>> check_run("../../etc")
  Traceback (most recent call last):
  compat.errors.UserError: --run_name=../../etc has '..' in it; ...
"""

from __future__ import annotations

import re
import unicodedata

from compat.errors import UserError

# Of the columns in MLflow's databases, from 1.30 on.
_EXPERIMENT_LENGTH = 256
_RUN_LENGTH = 250
# Control characters, what ends a line, and bytes that are no text, which no database takes.
_NO_TEXT = {"Cc", "Cs", "Zl", "Zp"}
_SHOWN = 60


def check_experiment(name: str) -> None:
    """Sees that an experiment may have a name; slashes are usual, as in Databricks' /Users/me/a.

    Raises:
      UserError: it may not.
    """
    _check("experiment_name", name, _EXPERIMENT_LENGTH)


def check_run(name: str | None) -> None:
    """Sees that a run may have a name; None lets MLflow invent one.

    Raises:
      UserError: it may not.
    """
    if name is None:
        return
    _check("run_name", name, _RUN_LENGTH)
    if re.match(r"[/\\]|[A-Za-z]:[/\\]", name):
        raise UserError(
            f"--run_name={_shown(name)} is an absolute path; give a name, such as wide-1"
        )


def _check(flag: str, name: str, most: int) -> None:
    if not name.strip():
        raise UserError(f"--{flag}={name} is empty; give a name, such as wide-1, or leave it out")
    if len(name) > most:
        raise UserError(f"--{flag}={_shown(name)} has {len(name)} characters; give {most} or fewer")
    if any(unicodedata.category(character) in _NO_TEXT for character in name):
        raise UserError(f"--{flag}={_shown(name)} is not plain text in one line; give a name of it")
    # A backslash parts folders on a server that runs Windows.
    if ".." in re.split(r"[/\\]", name):
        raise UserError(
            f"--{flag}={_shown(name)} has '..' in it, as a way out of a folder; give a name without"
        )


def _shown(name: str) -> str:
    return name if len(name) <= _SHOWN else name[:_SHOWN] + "..."
