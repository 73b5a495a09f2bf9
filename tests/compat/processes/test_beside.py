"""A command beside the others: what becomes of it, or of them, is its own affair."""

from __future__ import annotations

import time

import pytest

from tests.compat.processes.conftest import AWAIT_END, LEAVE_ID, python
from tests.compat.processes.conftest import run as run_group

pytestmark = [pytest.mark.once, pytest.mark.timeout(120)]


def run(chief: str, evaluator: str, **options: float) -> tuple[int, list[str], float]:
    """Returns the exit code of the group, what was said, and how long it took, in seconds."""
    started = time.monotonic()
    commands = [
        python(name, f"import sys, time; {code}")
        for name, code in (("chief", chief), ("evaluator", evaluator))
    ]
    code, _, said = run_group(commands, chief="chief", beside=["evaluator"], **options)
    return code, said, time.monotonic() - started


def test_its_failure_stops_nobody() -> None:
    code, said, seconds = run(f"{AWAIT_END}\ntime.sleep(1)", f"{LEAVE_ID}; sys.exit(3)")
    assert (code, said) == (0, ["evaluator failed with exit code 3; the others continue"])
    assert seconds >= 1


def test_failure_of_another_stops_it() -> None:
    code, said, seconds = run("sys.exit(4)", "time.sleep(50)")
    assert (code, said) == (4, ["chief failed with exit code 4; stopping evaluator"])
    assert seconds < 45


def test_it_is_given_time_behind_the_chief() -> None:
    code, said, _ = run("", "time.sleep(1)", patience=0.1)
    assert (code, said) == (0, [])


def test_it_is_given_time_as_long_as_it_writes() -> None:
    writing = "[(print(i, flush=True), time.sleep(0.5)) for i in range(10)]"
    code, said, seconds = run("", writing, patience=0.1, silence=3)
    assert (code, said) == (0, [])
    assert seconds >= 5


def test_being_silent_behind_the_chief_is_a_failure() -> None:
    code, said, _ = run("", "time.sleep(50)", patience=50, silence=0.5)
    assert (code, said) == (1, ["no output for 0.5 s after chief ended; stopping evaluator"])


def test_without_a_chief_the_others_end_the_run() -> None:
    commands = [
        python("ps", "import time; time.sleep(50)"),
        python("worker", ""),
        python("evaluator", "import time; time.sleep(50)"),
    ]
    options = {"servers": ["ps"], "beside": ["evaluator"], "silence": 0.5, "overdue": 0}
    code, _, said = run_group(commands, **options)
    complaint = "no output for 0.5 s after the last worker ended; stopping ps, evaluator"
    assert (code, said) == (0, [complaint])
