"""The flags of `compat run` that change TensorFlow in the process of the script.

A flag is a row of `FLAGS`. Child processes of the script and tasks of `--cluster` get it as well.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple

from compat._tensorflow import tf
from compat.errors import UserError


class Flag(NamedTuple):
    """A flag: what `add_argument` takes, and what to do with its value."""

    argument: Mapping[str, Any]
    install: Callable[[Any], None]  # Is called once the script has imported TensorFlow.


def _deterministic(_: bool) -> None:
    enable = getattr(tf.config.experimental, "enable_op_determinism", None)
    if enable is None:
        raise UserError("--deterministic needs TensorFlow 2.8 or later; leave it out here")
    enable()


FLAGS: Mapping[str, Flag] = {
    "deterministic": Flag(
        {"action": "store_true", "help": "compute the same in every run, given seeds"},
        _deterministic,
    ),
}
chosen: dict[str, Any] = {}  # Set by the command line: the values of the given flags.


def words() -> list[str]:
    """Returns the flags of the command line that are in `FLAGS`, such as "--deterministic"."""
    return [f"--{name}" + ("" if value is True else f"={value}") for name, value in chosen.items()]


def install() -> None:
    """Applies those of `FLAGS` that the command line contains; TensorFlow must be loaded."""
    for name, value in chosen.items():
        FLAGS[name].install(value)
