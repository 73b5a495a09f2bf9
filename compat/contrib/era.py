"""The era of a program, 0.x or 1.x: decides the argument order of calls that are valid in both."""

from __future__ import annotations

from compat.errors import UserError

CHOICES = ("auto", "0.x", "1.x")

# The value of `--era`; "auto" stands for the era that the names in the script imply.
chosen = "auto"
found = "1.x"  # The era that the names in the script imply.


def of_script() -> str:
    """Returns "0.x" or "1.x": the value of `--era`, or the era that the script's names imply."""
    return found if chosen == "auto" else chosen


def settle(call: str, old: str, new: str) -> str:
    """Returns the era of a call with arguments `old` in 0.x, `new` in 1.x; raises if unknown."""
    if chosen == "auto":
        raise UserError(
            f"{call} took ({old}) in TensorFlow 0.x and ({new}) in 1.x, and neither shapes nor "
            "types decide which is meant; add --era=0.x or --era=1.x"
        )
    return chosen


def version() -> str:
    """Returns the script's `tf.__version__`: the last release of its era."""
    return "0.12.1" if of_script() == "0.x" else "1.15.5"
