"""A profile of chosen steps: when it begins and ends, and what is written."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from compat._tensorflow import release
from compat.errors import UserError
from experiments import Settings
from experiments.training.recording.profile import Profile

pytestmark = pytest.mark.once
HAS_PROFILER = release.profiler_module() is not None


@pytest.mark.parametrize("steps", ["", "100", "5-5", "9-5", "-1-5", "1-2-3", "a-b", "٣-٤"])
def test_a_wrong_range_is_refused(steps: str) -> None:
    with pytest.raises(UserError, match="is not a range of global steps; give the first and the"):
        Settings(profile_steps=steps)


def test_a_range_behind_the_run_is_refused() -> None:
    with pytest.raises(UserError, match="100-120 begins when --max_steps=100 ends the run; give"):
        Settings(profile_steps="100-120", max_steps=100)


@pytest.mark.skipif(HAS_PROFILER, reason="for releases without a profiler")
def test_a_release_without_profiler_is_named(train: Any) -> None:
    training = train("--profile_steps=1-5").wait()
    assert training.code == 2
    assert "--profile_steps=1-5 needs the profiler of TensorFlow 2.2 or later" in training.err
    assert not list(training.folder.glob("runs/*"))


def assert_opens(events: Any) -> None:
    """Checks that viewers can draw it: each bar is in a named row, within the bar above it."""
    named = {(e["pid"], e.get("tid")) for e in events if e.get("name") == "thread_name"}
    bars = [event for event in events if event.get("ph") == "X"]
    assert bars
    ends: dict[Any, list[float]] = {}
    for bar in sorted(bars, key=lambda bar: (bar["ts"], -bar["dur"])):
        row, end = (bar["pid"], bar["tid"]), bar["ts"] + bar["dur"]
        assert row in named
        assert bar["name"]
        assert bar["ts"] >= 0
        assert bar["dur"] >= 0
        above = ends.setdefault(row, [])
        while above and above[-1] <= bar["ts"]:
            above.pop()
        assert not above or end <= above[-1] + 0.01  # Microseconds, rounded.
        above.append(end)


@pytest.mark.skipif(not HAS_PROFILER, reason="no profiler")
@pytest.mark.parametrize(
    ("steps", "calls", "message"),
    [
        ("10-20", [0, 10, 15, 20, 25], "profile from step 10 to step 20: "),
        ("10-20", [8, 31, 50], "profile from step 31 to step 50: "),  # Others were faster.
        ("10-20", [0, 15], "profile from step 15 to the end of the run: "),
        ("10-20", [20, 25], "no profile of steps 10-20: the chief"),  # Resumed behind it.
        ("10-20", [0, 5], "no profile of steps 10-20: the chief made no update then"),
        (None, [0, 5], ""),
    ],
)
def test_profile_of_a_range(tmp_path: Any, steps: Any, calls: list[int], message: str) -> None:
    lines: list[str] = []
    with Profile(Settings(profile_steps=steps, logdir=str(tmp_path)), lines.append) as profile:
        for step in calls:
            with profile.call(step):
                pass
    traces = list(tmp_path.glob("plugins/profile/*/*.trace.json.gz"))
    if not message.startswith("profile"):
        assert "".join(lines).startswith(message)
        assert len(lines) == bool(message)
        assert traces == []
        return
    (trace,) = traces
    assert lines == [message + str(trace)]
    with gzip.open(str(trace), "rt") as file:
        events = json.load(file)["traceEvents"]
    assert "train" in {event.get("name") for event in events}
    assert_opens(events)
    assert list(trace.parent.glob("*.xplane.pb"))


@pytest.mark.skipif(not HAS_PROFILER, reason="no profiler")
def test_no_profile_stays_of_a_failed_run(tmp_path: Any) -> None:
    with pytest.raises(KeyError), Profile(
        Settings(profile_steps="1-5", logdir=str(tmp_path)), print
    ) as profile, profile.call(1):
        raise KeyError
    assert not list(tmp_path.iterdir())
