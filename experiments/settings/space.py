"""The space of a sweep: for some settings of an experiment, a range or a list of values."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import Any, Sequence

from compat.errors import UserError
from experiments.settings.files import read_pairs
from experiments.settings.setting import checked, kind_of

# Settings of processes and files, which do not change what is trained.
_FIXED = {"strategy", "run_token", "allow_network", "max_restarts", "evaluator", "eval_in_chief"}


@dataclass(frozen=True)
class Values:
    """The values to try of one setting: `choices`, or numbers from `low` to `high`.

    The numbers are drawn evenly or, if `log` is set, their logarithms are.
    """

    text: str  # The values as the user wrote them.
    choices: tuple[Any, ...] = ()
    low: float = 0
    high: float = 0
    log: bool = False

    @property
    def first(self) -> Any:
        """One of the values."""
        return self.choices[0] if self.choices else self.low

    @property
    def all(self) -> Sequence[Any]:
        """All of the values; empty for floats of a range, of which there are too many."""
        if self.choices or not isinstance(self.low, int):
            return self.choices
        return range(self.low, int(self.high) + 1)


def read_space(given: str, known: Any) -> dict[str, Values]:
    """Returns the values to try, by setting, that --space gives.

    Args:
      given: `name=low..high`, `name=low..high:log` or `name=a|b`, several separated by commas; or
        the path of a YAML file with a line such as `name: low..high` for each setting.
      known: the class of the settings.

    Raises:
      UserError: a setting is unknown or must not vary, or a value is of another type or out of
        bounds.
    """
    if "=" not in given or os.path.isfile(given):
        pairs = read_pairs(given, "space")
    else:
        parts = [part.partition("=") for part in given.split(",")]
        pairs = [(name, text) for name, _, text in parts]
    fields = {field.name: field for field in dataclasses.fields(known)}
    space: dict[str, Values] = {}
    for name, value in pairs:
        field = fields.get(str(name).strip())
        if field is None:
            raise UserError(
                f"--space={given} has the unknown setting {str(name)!r}; give settings as in "
                "hidden=8..64, of those that --help of the program lists"
            )
        meta = field.metadata
        if meta["group"] == "recording" or meta["secret"] or field.name in _FIXED:
            raise UserError(
                f"--space={given} has {field.name}, which no sweep varies; leave it out"
            )
        if field.name in space:
            raise UserError(f"--space={given} has {field.name} twice; leave one of them out")
        space[field.name] = _values(field, str(value).strip())
    if not space:
        raise UserError(f"--space={given} has no settings; give some, as in hidden=8..64")
    return space


def _values(field: Any, text: str) -> Values:
    given = f"--space: {field.name}={text}"
    if kind_of(field.name, field.type)[0] not in (int, float) or ".." not in text:
        choices = tuple(checked(field, word.strip()) for word in text.split("|"))
        if len(choices) < 2 or len(set(choices)) < len(choices):
            raise UserError(f"{given} is not a range or different choices; give LOW..HIGH or A|B")
        return Values(text, choices)
    ends, _, scale = text.partition(":")
    low, high = (checked(field, word.strip()) for word in ends.split("..", 1))
    if scale not in ("", "log"):
        raise UserError(f"{given} has the scale {scale!r}; give log, or leave it out")
    if low >= high:
        raise UserError(f"{given} is empty; give the lower end first, as in 1..10")
    if scale and low <= 0:
        raise UserError(f"{given} has a lower end without a logarithm; give one above 0")
    return Values(text, low=low, high=high, log=bool(scale))
