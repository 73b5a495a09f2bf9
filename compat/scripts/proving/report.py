"""Formats a proof for people and programs: as lines, JSON and a page."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Iterator

from compat.errors import one_line
from compat.scripts.proving import batches, page
from compat.scripts.proving.comparison import Comparison
from compat.scripts.proving.operations import Trace
from compat.scripts.proving.runs import Run
from compat.scripts.proving.values import Gap

_MOST = 3  # The largest number of names in a line.


@dataclass(frozen=True)
class Proof:
    """Two runs and their comparison."""

    a: Run
    b: Run
    comparison: Comparison
    trace: Trace | None
    rtol: float
    each: bool = False

    @property
    def gathers(self) -> bool:
        """Whether one of the two runs makes several calls of a session as one (`--ahead`)."""
        return self.a.side.gathers or self.b.side.gathers


def lines(proof: Proof) -> Iterator[str]:
    """Yields the lines for a terminal."""
    for run in (proof.a, proof.b):
        yield f"{run.side.name}: {run.side.says}"
    yield from notes(proof)
    yield verdict(proof)
    for label, text in findings(proof):
        yield f"  {label}: {one_line(text)}"


def verdict(proof: Proof) -> str:
    """Returns the result in one line."""
    comparison = proof.comparison
    if comparison.verdict:
        return f"differ: {one_line(comparison.verdict)}"
    worst = comparison.worst()
    calls = len(proof.a.calls)
    if worst is None and proof.gathers:
        return (
            f"equal: the variables after {calls} training calls; no loss was fetched; largest "
            f"relative difference of what was added to a variable {comparison.change:.2g}"
        )
    if worst is None:
        return f"equal: the variables after each of {calls} training calls; no loss was recorded"
    added = f", of what was added to a variable {comparison.change:.2g}" if proof.gathers else ""
    first = "the first " if proof.a.is_cut else ""
    what, kind = ("values", "") if proof.a.trains_nothing else ("losses", "training ")
    return (
        f"equal: {len(comparison.losses)} {what} of {first}{calls} {kind}calls; largest relative "
        f"difference {worst.gap.error:.2g}{added}, tolerance {proof.rtol:.2g}"
    )


def findings(proof: Proof) -> Iterator[tuple[str, str]]:
    """Yields the differences at the call that caused them, as labels and texts."""
    trace = proof.trace
    if trace is None:
        return
    if proof.comparison.call != trace.call:
        yield "cause", f"training call {trace.call}, the first to change a variable differently"
    named = (
        ("variables before it", trace.variables),
        ("gradients", trace.gradients),
        ("variables changed", trace.changes),
    )
    for label, items in named:
        more = f"; and {len(items) - 1} more" if len(items) > 1 else ""
        yield label, f"{items[0][0]}: {items[0][1]}{more}" if items else "equal"
    gap = f": {trace.gap}" if trace.gap else ""
    none = "none was found among those that can be fetched, which are not in loops"
    yield "first operation", f"{trace.operation}{gap}" if trace.operation else none


def notes(proof: Proof) -> Iterator[str]:
    """Yields remarks on the limits of the proof."""
    runs = (proof.a, proof.b)
    if any(run.uses_cluster for run in runs):
        yield "cluster: one worker, in one process, without its parameter servers"
    if proof.each:
        yield "each training call of B begins with the variables of A"
    if proof.gathers:
        yield "calls are gathered: nothing is read between them, and the variables after the last"
    if proof.a.trains_nothing:
        yield "it trains nothing: all calls of sessions that fetch numbers are compared"
    odd = sum(not math.isfinite(loss.gap.a) for loss in proof.comparison.losses)
    if odd:
        yield f"{odd} losses of A are NaN or infinite, which shows little"
    free: dict[str, None] = {}
    for run in runs:
        for record in run.calls:
            free.update(dict.fromkeys(record.get("uncontrolled", ())))
    if free:
        names = list(free)
        more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
        yield f"not controlled: what is drawn or read by {', '.join(names[:_MOST])}{more}"
    renamed = proof.b.calls[0].get("renamed", {}) if proof.b.calls else {}
    if renamed:
        shown = ", ".join(f"{here} for {other}" for here, other in list(renamed.items())[:_MOST])
        more = f" and {len(renamed) - _MOST} more" if len(renamed) > _MOST else ""
        yield f"matched by their order: B's variables {shown} of A{more}"
    yield from _inputs(proof.b)


def _inputs(b: Run) -> Iterator[str]:
    """Yields lines that say how the batches of B differ from those of A."""
    unfed = sorted({name for record in b.calls for name in record.get("unfed", ())})
    if unfed:
        yield f"not controlled: B feeds {', '.join(unfed[:_MOST])}, which A does not"
    drawn = batches.line(b)
    if drawn:
        yield drawn


def as_dict(proof: Proof) -> dict[str, Any]:
    """Returns the proof as a dictionary for JSON."""
    trace, comparison = proof.trace, proof.comparison
    return {
        "equal": not comparison.verdict,
        "verdict": verdict(proof),
        "a": proof.a.side.says,
        "b": proof.b.side.says,
        "notes": list(notes(proof)),
        "rtol": proof.rtol,
        "training_calls": [len(proof.a.calls), len(proof.b.calls)],
        "losses": [
            {"call": loss.call, "name": loss.name, **_gap(loss.gap)} for loss in comparison.losses
        ],
        "difference": trace
        and {
            "seen_in_call": comparison.call,
            "caused_by_call": trace.call,
            "variables_before": _gaps(trace.variables),
            "gradients": _gaps(trace.gradients),
            "changes": _gaps(trace.changes),
            "first_operation": {"name": trace.operation, **(_gap(trace.gap) if trace.gap else {})},
        },
    }


def as_json(proof: Proof) -> str:
    """Returns the proof as JSON."""
    return json.dumps(as_dict(proof), indent=2) + "\n"


def as_page(proof: Proof) -> str:
    """Returns the proof as a page of HTML."""
    losses = [(loss.call, loss.name, loss.gap) for loss in proof.comparison.losses]
    heads = [f"{run.side.name}: {run.side.says}" for run in (proof.a, proof.b)]
    return page.html(
        verdict(proof),
        not proof.comparison.verdict,
        [*heads, *notes(proof)],
        list(findings(proof)),
        losses,
    )


def _gaps(named_gaps: list[tuple[str, Gap]]) -> list[dict[str, Any]]:
    return [{"name": name, **_gap(gap)} for name, gap in named_gaps]


def _gap(gap: Gap) -> dict[str, Any]:
    """Returns the fields of a gap; NaN and infinity become text, since JSON does not have them."""
    fields: dict[str, Any] = gap._asdict()
    return {
        key: value if isinstance(value, str) or abs(value) < float("inf") else str(value)
        for key, value in fields.items()
    }
