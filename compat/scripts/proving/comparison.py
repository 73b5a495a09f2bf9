"""Compares two runs: first their losses, then the changes of variables in their training calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterator

import numpy as np

from compat.scripts.proving import values
from compat.scripts.proving.runs import Run
from compat.scripts.proving.values import Gap

RTOL = 1e-4
# Tolerance for the change of a variable in one call: adaptive optimizers enlarge rounding errors.
CHANGE_RTOL = 1e-2
# The difference of two losses is relative to at least this fraction of the largest loss so far.
_LEAST = 1e-2
# A gradient smaller than this fraction of the largest one may be rounding error alone.
_NOISE_GRADIENT = 1e-4
_ROUNDING = 1e-6  # A change smaller than this fraction of a variable may be lost in float32.


@dataclass(frozen=True)
class Loss:
    """A number that a training call of both runs has fetched."""

    call: int
    name: str
    gap: Gap


@dataclass
class Comparison:
    """The result of a comparison: the equal losses, and the first difference of the two runs.

    Attributes:
      losses: All losses that both runs have, up to the first difference.
      verdict: The first difference in one line; empty if there is none.
      call: The training call that shows the difference; 0 if it is in no call.
      cause: The call that made the difference, whose operations can explain it; 0 if unknown.
      change: The largest relative difference between the change of a variable in A and in B.
    """

    losses: list[Loss] = field(default_factory=list)
    verdict: str = ""
    call: int = 0
    cause: int = 0
    change: float = 0.0

    @property
    def calls(self) -> int:
        """The number of training calls with equal losses."""
        last = self.losses[-1] if self.losses else None
        return 0 if last is None else last.call - int(last.gap.differs)

    def worst(self) -> Loss | None:
        """The loss with the largest difference."""
        return max(self.losses, key=lambda loss: loss.gap.error, default=None)


def compare(a: Run, b: Run, rtol: float, each: bool = False) -> Comparison:
    """Compares the losses of two runs, and their exits.

    Args:
      a: The first run.
      b: The run that repeats it.
      rtol: Relative tolerance of losses.
      each: Whether each call of B started from the variables of A.
    """
    result = Comparison()
    if b.mismatch:
        result.verdict = f"the trainable variables do not match: {b.mismatch}"
        return result
    largest: dict[str, float] = {}
    for loss in _losses(a, b, rtol, largest):
        result.losses.append(loss)
        if loss.gap.differs:
            what, kind = ("value", "") if a.trains_nothing else ("loss", "training ")
            result.verdict = f"{what} {loss.name} of {kind}call {loss.call}: {loss.gap}"
            result.call = loss.call
            break
    else:
        result.verdict = _ends_differ(a, b)
        if not (result.verdict or a.trains_nothing):
            _compare_changes(a, b, result, each)
    if result.call and not result.cause:
        result.cause = first_change(a, b, result.call) or result.call
    return result


def _losses(a: Run, b: Run, rtol: float, largest: dict[str, float]) -> Iterator[Loss]:
    for number, (ours, theirs) in enumerate(zip(a.calls, b.calls), 1):
        if a.trains_nothing:
            yield from _fetched(a, b, number, rtol)
            continue
        left, right = dict(ours.get("scalars", ())), dict(theirs.get("scalars", ()))
        for name, other in pairs(list(left), list(right)):
            size = abs(left[name])
            if np.isfinite(size):
                largest[name] = max(size, largest.get(name, 0.0))
            least = _LEAST * largest.get(name, 0.0)
            yield Loss(number, name, values.numbers(left[name], right[other], rtol, least))


def _fetched(a: Run, b: Run, call: int, rtol: float) -> Iterator[Loss]:
    """Yields the arrays that a call fetched, for programs that do not train."""
    ours, theirs = (run.load("fetched", call) for run in (a, b))
    here, there = (run.calls[call - 1].get("fetched", []) for run in (a, b))
    if len(here) != len(there):
        yield Loss(call, "count", Gap(float("inf"), rtol, len(here), len(there)))
    for name, other in pairs(here, there):
        gap = values.tensors(ours[name], theirs[other], rtol)
        sizes = float(ours[name].size), float(theirs[other].size)
        yield Loss(call, name, gap or Gap(float("inf"), rtol, *sizes, "size"))


def pairs(left: list[str], right: list[str]) -> list[tuple[str, str]]:
    """Pairs equal names, and the other names in order if both lists have as many of them."""
    same = [(name, name) for name in left if name in right]
    ours = [name for name in left if name not in right]
    theirs = [name for name in right if name not in left]
    return same + (list(zip(ours, theirs)) if len(ours) == len(theirs) else [])


def _ends_differ(a: Run, b: Run) -> str:
    for number, (ours, theirs) in enumerate(zip(a.calls, b.calls), 1):
        if ours["raised"] != theirs["raised"]:
            done = [
                f"raises {record['raised']}" if record["raised"] else "does not"
                for record in (ours, theirs)
            ]
            return f"training call {number}: A {done[0]}, B {done[1]}: {b.last_line()}"
    if len(b.calls) < len(a.calls):
        how = f"ended with code {b.ended}" if b.ended is not None else "was ended"
        return f"A trains {len(a.calls)} times, B {len(b.calls)} times and {how}: {b.last_line()}"
    if b.trained_more:
        return f"A trains {len(a.calls)} times, B continues"
    if b.ended and not b.is_cut:
        return f"after its last training call B ended with code {b.ended}: {b.last_line()}"
    return ""


def _compare_changes(a: Run, b: Run, result: Comparison, each: bool) -> None:
    """Compares the changes of variables in the first training call, or in each one.

    A call computes its loss before it changes the variables, so that only later losses show the
    change. All calls are compared if the runs have no losses in common, or if `each` call starts
    from the variables of A, so that no later loss shows it. If a run makes several calls as one
    (`--ahead`), variables are known after the last call only.
    """
    for call in range(1, len(a.calls) + 1):
        gaps = list(changes(a, b, call))
        for name, gap in gaps:
            result.change = max(result.change, gap.error)
            if gap.differs:
                result.verdict = f"what training call {call} adds to variable {name}: {gap}"
                result.call = result.cause = call
                return
        if gaps and result.losses and not each:
            return


def first_change(a: Run, b: Run, last: int) -> int:
    """Returns the first call before `last` that changes variables differently; 0 if none does."""
    for call in range(1, last):
        if any(gap.differs for _, gap in changes(a, b, call)):
            return call
    return 0


def changes(a: Run, b: Run, call: int) -> Iterator[tuple[str, Gap]]:
    """Yields the gap between the changes of each trainable variable in a call of A and of B."""
    starts = [before(run, call) for run in (a, b)]
    afters = [run.load("after", call) for run in (a, b)]
    small = _negligible(a, b, call)
    for name in a.calls[call - 1].get("learned", ()):
        if any(name not in arrays for arrays in (*starts, *afters)) or name in small:
            continue
        if starts[0][name].shape != starts[1][name].shape:
            continue
        ours, theirs = (
            np.asarray(after[name], np.float64) - start[name]
            for start, after in zip(starts, afters)
        )
        noise = _ROUNDING * max(values.rms(start[name]) for start in starts)
        gap = values.tensors(ours, theirs, CHANGE_RTOL, noise)
        if gap is not None and gap.differs and values.few_differ(ours, theirs, CHANGE_RTOL):
            # The first update of Adam has the same size even if the gradient is rounding error
            # alone.
            gap = gap._replace(tolerance=gap.error)
        if gap is not None:
            yield name, gap


def before(run: Run, call: int) -> dict[str, Any]:
    """Returns the variables before a call, as far as they were recorded."""
    begun = run.load("begin", call)
    while not begun and call > 1:
        call -= 1
        begun = run.load("after", call) or run.load("begin", call)
    return begun


def gradients(a: Run, b: Run, call: int) -> dict[str, tuple[str, str]]:
    """Returns the names of the gradient tensors of both runs, by variable."""
    ours, theirs = (
        {name: tensor for tensor, name in run.operations(call)["gradients"].items()}
        for run in (a, b)
    )
    return {name: (ours[name], theirs[name]) for name in ours if name in theirs}


def _negligible(a: Run, b: Run, call: int) -> set[str]:
    """Returns the variables whose gradients are so small that they may be rounding errors alone.

    The bias before a batch normalization is an example. Optimizers such as Adam turn such gradients
    into large updates.
    """
    sizes: dict[str, float] = {}
    ours, theirs = (run.calls[call - 1].get("slopes", {}) for run in (a, b))
    sizes = {name: max(ours[name], theirs[name]) for name in ours if name in theirs}
    least = _NOISE_GRADIENT * max(sizes.values(), default=0.0)
    return {name for name, size in sizes.items() if size < least}
