"""A process that grows is told from one that does not."""

from __future__ import annotations

import os
import runpy
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.once

TRACES = runpy.run_path(str(Path(__file__).with_name("traces.py")))
Sample, Trace, started = TRACES["Sample"], TRACES["Trace"], TRACES["started"]


def trace(secs: int, memory: float = 0.0, threads: float = 0.0, files: float = 0.0) -> Any:
    """Returns one that lived so long and grew by so much a second, after 30 s of loading."""
    found = Trace(0, "ps 0", 0.0)
    for age in range(0, secs + 1, 2):
        late = max(0, age - 30)
        sample = Sample(age, 300 + memory * late, int(40 + threads * late), int(90 + files * late))
        found.samples.append(sample if late else Sample(age, 10 * age, age, 3 * age))
    return found


@pytest.mark.parametrize("growth", [{}, {"memory": 0.1}, {"threads": 0.01}, {"files": 0.01}])
def test_flat(growth: dict[str, float]) -> None:
    assert trace(300, **growth).is_flat()


@pytest.mark.parametrize("growth", [{"memory": 1.0}, {"threads": 0.1}, {"files": 0.1}])
def test_growing(growth: dict[str, float]) -> None:
    assert not trace(300, **growth).is_flat()


def test_a_process_may_keep_something_of_each_peer_that_was_lost() -> None:
    grown = trace(300, memory=0.75, threads=0.15)
    before, amid, later = (Trace(1, "worker 0", began) for began in (40.0, 200.0, 290.0))
    assert not grown.is_flat()
    assert not grown.is_flat([before, later])
    assert grown.is_flat([before, amid, later])
    assert not trace(300, files=0.1).is_flat([before, amid, later])


def test_what_still_loads_has_not_grown() -> None:
    assert trace(300, memory=1.0).is_flat(loaded=600.0)
    assert not trace(300, memory=1.0).is_flat(loaded=400.0)
    assert not trace(300, threads=0.1).is_flat(loaded=600.0)


def test_of_a_short_life_nothing_is_told() -> None:
    short = trace(88, memory=100.0)
    assert short.is_flat()
    assert short.settled() is None


def test_this_very_process_is_seen() -> None:
    mine = Trace(os.getpid(), "test", time.monotonic())
    mine.sample(time.monotonic() + 70)
    (sample,) = mine.samples
    assert sample.memory > 5
    assert sample.threads >= 1
    assert sample.files >= 3
    assert int(started(os.getpid())) > int(started(1)) > 0
    gone = Trace(2**22 + 1, "nobody", 0.0)
    assert started(2**22 + 1) == ""
    gone.sample(1.0)
    assert gone.samples == []
