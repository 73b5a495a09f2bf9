"""Traces some updates by TensorFlow's profiler, for TensorBoard and other viewers."""

from __future__ import annotations

import contextlib
import glob
import gzip
import json
import os
from typing import Any, Callable, ContextManager, Iterator

from compat._tensorflow.private import profile_class
from compat._tensorflow.release import profiler_module


class Profile:
    """Profiles this process while it makes the updates of `--profile_steps`.

    Other workers may make all of these updates while the chief makes one; then its next updates are
    profiled.
    """

    def __init__(self, settings: Any, say: Callable[[str], object]) -> None:
        steps: tuple[int, int] = settings.profiled or (0, 0)
        self._first, self._last = steps
        self._missing = settings.profiled is not None
        self._logdir = settings.logdir
        self._say = say
        self._begun: int | None = None  # The step at which the profile began.
        self._over: bool | None = None  # Whether it has ended; None before the first call.

    def __enter__(self) -> Profile:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._begun is not None:
            self._stop("the end of the run", save=error is None)
        elif self._missing and error is None:
            self._say(
                f"no profile of steps {self._first}-{self._last}: the chief made no update then"
            )

    def call(self, step: int) -> ContextManager[Any]:
        """Returns a context for a call that makes updates from global step `step` on."""
        if self._over is None:  # A run may resume after the steps to profile.
            self._over = step >= self._last
        if self._begun is not None and step >= self._last:
            self._stop(f"step {step}")
        if not self._over and self._begun is None and step >= self._first:
            self._begun, self._missing = step, False
            profiler_module().start(self._logdir)
        if self._begun is None:
            return contextlib.nullcontext()
        trace: ContextManager[Any] = profiler_module().Trace("train", step_num=step, _r=1)
        return trace

    def _stop(self, end: str, save: bool = True) -> None:
        begun, self._begun, self._over = self._begun, None, True
        before = set(_files(self._logdir, "*.xplane.pb"))
        profiler_module().stop(save=save)
        for path in set(_files(self._logdir, "*.xplane.pb")) - before:
            folder = os.path.dirname(path)
            traces = glob.glob(os.path.join(glob.escape(folder), "*.trace.json.gz"))
            # Until 2.4 or so, TensorFlow writes a trace as well.
            trace = traces[0] if traces else _write_trace(path)
            self._say(f"profile from step {begun} to {end}: {trace or path}")


def _files(logdir: str, pattern: str) -> list[str]:
    return glob.glob(os.path.join(glob.escape(logdir), "plugins", "profile", "*", pattern))


def _write_trace(path: str) -> str | None:
    """Writes a profile in the Trace Event Format, which viewers read; returns its path."""
    made = profile_class()
    if made is None:
        return None
    with open(path, "rb") as file:
        space = made.FromString(file.read())
    trace = path.replace(".xplane.pb", ".trace.json.gz")
    with gzip.open(trace, "wt", encoding="utf-8") as text:
        json.dump({"traceEvents": list(_events(space))}, text)
    return trace


def _events(space: Any) -> Iterator[dict[str, Any]]:
    """Yields the events of an `XSpace` in the Trace Event Format, in microseconds from the first.

    A plane, such as the host, becomes a process, and each of its lines a thread.
    """
    first = min((line.timestamp_ns for plane in space.planes for line in plane.lines), default=0)
    for pid, plane in enumerate(space.planes):
        yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": plane.name}}
        for tid, line in enumerate(plane.lines):
            name = {"name": line.display_name or line.name or str(line.id)}
            yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": name}
            for event in line.events:
                kind = plane.event_metadata[event.metadata_id]
                yield {
                    "ph": "X",
                    "pid": pid,
                    "tid": tid,
                    "name": kind.display_name or kind.name,
                    "ts": (line.timestamp_ns - first) / 1e3 + event.offset_ps / 1e6,
                    "dur": event.duration_ps / 1e6,
                }
