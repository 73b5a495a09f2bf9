"""Compares the batches that an experiment draws itself with those that a proof feeds to it.

Both runs of a proof train on the batches of A. If B is an experiment, each call also draws a batch
from its `data()`, for this comparison only.
"""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple

import numpy as np

from compat.scripts.proving import values
from compat.scripts.proving.runs import Run

# A relative difference of this size arises, for example, if pixels are divided in another order.
_RTOL = 1e-5


class Difference(NamedTuple):
    """An input whose batch in a call is not the same in both runs."""

    call: int
    name: str
    says: str  # The difference, in words.


def line(b: Run) -> str:
    """Returns a line that compares the batches of an experiment; "" if it draws none itself."""
    calls = [n for n in range(1, len(b.calls) + 1) if b.load("given", n)]
    if not calls:
        return ""
    differences = [difference for call in calls for difference in _differences(b, call)]
    equal = len(calls) - len({difference.call for difference in differences})
    summary = f"batches of data(): equal in {equal} of {len(calls)} calls"
    if not differences:
        return summary
    first = differences[0]
    return (
        f"{summary}; in call {first.call} {first.name}: {first.says}; {_all(b, calls, first.name)}"
    )


def _differences(b: Run, call: int) -> Iterator[Difference]:
    fed, drawn = b.load("given", call), b.load("drawn", call)
    for name, batch in fed.items():
        if name not in drawn:
            yield Difference(call, name, "data() has ended")
        else:
            says = _difference(batch, drawn[name])
            if says:
                yield Difference(call, name, says)


def _difference(a: Any, b: Any) -> str:
    """Returns the difference between the batches of A and B, in words; "" if they are equal."""
    if a.shape != b.shape:
        return f"shape {list(a.shape)} and {list(b.shape)}"
    if np.array_equal(a, b):
        return ""
    if a.ndim and np.array_equal(_sorted(a), _sorted(b)):
        return "the same examples in another order"
    if a.dtype.kind not in "fiub":
        return "other examples"
    gap = values.tensors(a, b, _RTOL)
    return str(gap) if gap is not None and gap.differs else ""


def _sorted(batch: Any) -> Any:
    """Returns the examples of a batch, sorted by their bytes."""
    return np.array(sorted(example.tobytes() for example in np.ascontiguousarray(batch)), object)


def _all(b: Run, calls: list[int], name: str) -> str:
    """Returns the mean and range of all batches of an input, for A and for B."""
    both = [[b.load(kind, call).get(name) for call in calls] for kind in ("given", "drawn")]
    summaries = " and ".join(_summary([a for a in batches if a is not None]) for batches in both)
    return f"all of them: {summaries}"


def _summary(batches: list[Any]) -> str:
    flat = np.concatenate([batch.ravel() for batch in batches]) if batches else np.zeros(0)
    if flat.dtype.kind not in "fiub" or not flat.size:
        return f"{flat.size} values"
    flat = flat.astype(np.float64)
    return f"mean {flat.mean():.4g} from {flat.min():.4g} to {flat.max():.4g}"
