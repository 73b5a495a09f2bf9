"""A command beside the others: what becomes of it, or of them, is its own affair."""

from __future__ import annotations

import io
import sys
import time

import pytest

from experiments.processes import Command, ProcessGroup

pytestmark = [pytest.mark.once, pytest.mark.timeout(60)]


def python(name: str, code: str) -> Command:
    return Command(name, (sys.executable, "-I", "-S", "-c", "import sys, time; " + code))


def run(*commands: Command, patience: float = 30.0) -> tuple[int, list[str], float]:
    """Returns the exit code of the group, what was said, and how long it took, in seconds."""
    said: list[str] = []
    started = time.monotonic()
    with ProcessGroup(
        commands,
        chief="chief",
        beside=["evaluator"],
        say=said.append,
        out=io.StringIO(),
        patience=patience,
    ) as group:
        code = group.wait()
    return code, said, time.monotonic() - started


def test_its_failure_stops_nobody() -> None:
    code, said, seconds = run(python("chief", "time.sleep(1)"), python("evaluator", "sys.exit(3)"))
    assert (code, said) == (0, ["evaluator failed with exit code 3; the others go on"])
    assert seconds >= 1


def test_failure_of_another_stops_it() -> None:
    code, said, seconds = run(python("chief", "sys.exit(4)"), python("evaluator", "time.sleep(50)"))
    assert (code, said) == (4, ["chief failed with exit code 4; stopping evaluator"])
    assert seconds < 30


def test_it_is_given_time_behind_the_chief() -> None:
    code, said, _ = run(python("chief", ""), python("evaluator", "time.sleep(1)"))
    assert (code, said) == (0, [])


def test_being_late_is_no_failure() -> None:
    code, said, _ = run(python("chief", ""), python("evaluator", "time.sleep(50)"), patience=0.5)
    assert (code, said) == (0, ["chief ended 0.5 s ago, the rest did not; stopping evaluator"])
