"""Compares the journals of a cluster's clients with the ledger that their updates have left.

What may happen to an update is what docs/failures.md promises. An update is *answered* if its
client has received the values of its call.
"""

from __future__ import annotations

import bisect
import collections
from pathlib import Path
from typing import Any, NamedTuple, Sequence

import numpy as np

# A lost worker's call is run again, and a request under way may arrive, so long after a fault.
_AFTER_SECS = 60.0


class Loss(NamedTuple):
    """A fault of a task, from one time to another, in seconds of `time.monotonic`."""

    task: str
    what: str
    start: float
    end: float


class Call(NamedTuple):
    """Updates that a client has asked for at once.

    Attributes:
      numbers: of the updates, in the ledger.
      sent, done: when it was asked for, and answered; `done` is infinite if it never was.
      staleness: of its last update, as reported; -1 if not answered.
    """

    numbers: Sequence[int]
    sent: float
    done: float
    staleness: int


class Rollback(NamedTuple):
    """From the writing of a checkpoint to the time when the run had resumed from it."""

    saving: float
    open: float


class Journal(NamedTuple):
    """What a client has written."""

    calls: list[Call]
    rollbacks: list[Rollback]
    openings: list[float]


class Result(NamedTuple):
    """How often updates were applied.

    Attributes:
      wrong: what breaks a promise, a line each; best nothing.
      sent: how many updates were asked for.
      once, twice: how many are in the ledger once, and more often.
      lost: answered, and in the ledger no more, since the run resumed from a checkpoint before.
      most_lost: by one such resumption.
      resumed: how often the run has resumed from a checkpoint.
      unanswered: sent by a client that was lost, or had lost its peers, before it was answered.
      unanswered_applied: of these, in the ledger.
      staleness: as reported, the mean and the largest.
      step: the global step in the end.
    """

    wrong: list[str]
    sent: int
    once: int
    twice: int
    lost: int
    most_lost: int
    resumed: int
    unanswered: int
    unanswered_applied: int
    staleness: tuple[float, int]
    step: int


def read_journal(path: Path, index: int, trainers: int) -> Journal:
    """Reads the file of one client."""
    waiting: dict[int, tuple[float, int, int]] = {}
    calls: list[Call] = []
    saved: dict[int, float] = {}
    saving: float | None = None
    rollbacks: list[Rollback] = []
    openings: list[float] = []

    def call(sent: float, first: int, count: int, done: float, staleness: int) -> None:
        numbers = range(first * trainers + index, (first + count) * trainers + index, trainers)
        calls.append(Call(numbers, sent, done, staleness))

    for line in path.read_text("utf-8").splitlines():
        time, event, *values = line.split()
        if event == "sent":
            first, count = map(int, values)
            waiting[first + count - 1] = float(time), first, count
        elif event == "done" and int(values[0]) in waiting:
            call(*waiting.pop(int(values[0])), float(time), int(values[1]))
        elif event == "saving":
            saving = float(time)
        elif event == "saved" and saving is not None:
            saved[int(values[0])], saving = saving, None
        elif event == "opening":
            openings.append(float(time))
            saved.setdefault(0, openings[0])  # The first, written before there are any updates.
        elif event == "open" and int(values[0]) >= 0:
            # Or one that was written by a client which was lost before it could say so.
            begun = saved.setdefault(int(values[0]), openings[0] if saving is None else saving)
            rollbacks.append(Rollback(begun, float(time)))
            saving = None
    for unanswered in waiting.values():
        call(*unanswered, float("inf"), -1)
    return Journal(calls, rollbacks, openings)


def check(folder: Path, runtime: str, trainers: int, losses: Sequence[Loss]) -> Result:
    """Tells what has happened to each update of a run that has ended.

    Args:
      folder: where the clients have left their journals, and the chief the ledger.
      runtime: "legacy" or "modern".
      trainers: how many clients there were.
      losses: the faults of the run.
    """
    journals = [read_journal(folder / f"trainer-{i}.journal", i, trainers) for i in range(trainers)]
    with np.load(str(folder / "ledger.npz")) as found:
        ledger, step = found["ledger"], int(found["step"])
    calls = [call for journal in journals for call in journal.calls]
    rollbacks = journals[0].rollbacks  # Of the chief.
    wrong: list[str] = []
    lost: collections.Counter[Rollback] = collections.Counter()
    unanswered = unanswered_applied = 0
    repeated: list[Call] = []
    sent = np.zeros(len(ledger), bool)
    for call in calls:
        sent[call.numbers] = True
        times = ledger[call.numbers]
        if call.done == float("inf"):
            unanswered += len(times)
            unanswered_applied += int((times > 0).sum())
        elif not times.all():
            cause = next(
                (r for r in rollbacks if call.done > r.saving and call.sent < r.open), None
            )
            missing = [n for n, found in zip(call.numbers, times) if not found]
            if cause is None:
                wrong.append(f"updates {missing} were lost, and no later checkpoint was restored")
            else:
                lost[cause] += len(missing)
        if (times > 1).any():
            repeated.append(call)
    unknown = ((ledger > 0) & ~sent).nonzero()[0]
    wrong += [f"update {n} is in the ledger, and was never sent" for n in unknown]
    wrong += _repeated_wrongly(repeated, ledger, runtime, losses)
    answered = [call for call in calls if call.staleness >= 0 or call.done < float("inf")]
    wrong += _stale_wrongly(journals, rollbacks, losses)
    reported = [call.staleness for call in answered] or [0]
    return Result(
        wrong,
        int(sent.sum()),
        int((ledger == 1).sum()),
        int((ledger > 1).sum()),
        sum(lost.values()),
        max(lost.values(), default=0),
        len(rollbacks),
        unanswered,
        unanswered_applied,
        (round(float(np.mean(reported)), 2), max(reported)),
        step,
    )


def _repeated_wrongly(
    calls: Sequence[Call], ledger: Any, runtime: str, losses: Sequence[Loss]
) -> list[str]:
    """Returns what is wrong with the calls of which updates were applied more than once."""
    wrong = []
    of_workers = [loss for loss in losses if loss.task.startswith("worker")]
    for call in calls:
        shown = [n for n in call.numbers if ledger[n] > 1]
        causes = [
            loss
            for loss in of_workers
            if call.sent < loss.end + _AFTER_SECS and call.done > loss.start
        ]
        if runtime == "legacy":
            wrong.append(f"updates {shown} were applied more than once on the legacy runtime")
        elif max(ledger[n] for n in call.numbers) - 1 > len(causes):
            wrong.append(f"updates {shown} were applied twice without the loss of a worker")
    if runtime == "modern" and len(calls) > len(of_workers):
        wrong.append(f"{len(calls)} calls were run again after {len(of_workers)} losses")
    return wrong


def _stale_wrongly(
    journals: Sequence[Journal], rollbacks: Sequence[Rollback], losses: Sequence[Loss]
) -> list[str]:
    """Returns which reported staleness cannot be.

    It is at most the number of other updates that were under way at the same time, by the journals
    of all clients.
    """
    wrong, starts, ends, most = [], [], [], 1
    for journal in journals:
        for call in journal.calls:
            later = bisect.bisect(journal.openings, call.sent)
            gone = journal.openings[later] if later < len(journal.openings) else float("inf")
            starts += [call.sent] * len(call.numbers)
            ends += [min(call.done, gone + _AFTER_SECS)] * len(call.numbers)
            most = max(most, len(call.numbers))
    starts.sort()
    ends.sort()
    for call in (call for journal in journals for call in journal.calls):
        # A global step that was restored meanwhile tells nothing of other updates.
        if call.done == float("inf") or any(
            call.sent < r.open and call.done > r.open - _AFTER_SECS for r in rollbacks
        ):
            continue
        others = bisect.bisect_left(starts, call.done) - bisect.bisect_left(ends, call.sent) - 1
        others += most * sum(
            loss.start < call.done and call.sent < loss.end + _AFTER_SECS for loss in losses
        )
        if not 0 <= call.staleness <= others:
            wrong.append(
                f"update {call.numbers[-1]} reports a staleness of {call.staleness}, while "
                f"{others} other updates were under way"
            )
    return wrong
