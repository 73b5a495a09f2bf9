"""The era of a program, 0.x or 1.x: which order the arguments have where both were valid."""

from __future__ import annotations

from compat.errors import UserError

CHOICES = ("auto", "0.x", "1.x")

chosen = "auto"  # The value of `--era`; "auto" means what the script's names imply.
found = "1.x"  # What they imply.


def of_script() -> str:
    """Returns "0.x" or "1.x": the value of `--era`, or the era of the script's names."""
    return found if chosen == "auto" else chosen


def settle(call: str, old: str, new: str) -> str:
    """Returns the era of a call with arguments `old` in 0.x, `new` in 1.x; it has to be given."""
    if chosen == "auto":
        raise UserError(
            f"{call} took ({old}) in TensorFlow 0.x and ({new}) in 1.x, and neither shapes nor "
            "types tell which is meant; add --era=0.x or --era=1.x"
        )
    return chosen


def version() -> str:
    """Returns the script's `tf.__version__`: the last release of its era."""
    return "0.12.1" if of_script() == "0.x" else "1.15.5"
