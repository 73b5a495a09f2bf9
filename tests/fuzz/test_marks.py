"""The small files of a log folder by which a later process goes on, ends, or finds its run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compat.errors import UserError
from compat.tracking.mlflow import run_id
from experiments.evaluation import early_stopping, selection
from experiments.evaluation.selection import Evaluation
from experiments.settings import Settings
from experiments.training.recording import completion
from tests.fuzz.conftest import attempt, mutated, times

pytestmark = pytest.mark.once

MONITOR = "validation/accuracy"
LINES = b"".join(
    json.dumps({"step": step, "validation/loss": 0.31, MONITOR: accuracy}).encode() + b"\n"
    for step, accuracy in ((100, 0.5), (200, 0.91), (300, 0.9))
)
REQUEST = b'{"step": 300, "patience": 2, "reason": "none of 2 evaluations was better"}\n'
RUN = b"0123456789abcdef0123456789abcdef"
BROKEN = (b"[" * 99_999, b"[]", b"null", b"{}", b"\xff", b"\n", b"\0", b"9" * 5000, b"true", b"-1")
NUMBERS = (b"9" * 4000, b"1e999", b"NaN", b'"\\ud800"', b'"\\u001b[2J"', b"1.5", b"-Infinity")
TOKENS = (*BROKEN, *NUMBERS, b'"step": ', b"..", b"/")
VALUES = st.sampled_from(
    [None, [], {}, "x", "3", "\ud800", "a\nb", -1, 1 << 70, 10**4000, True, 1.5, float("nan")]
)


def mistaken(whole: bytes) -> st.SearchStrategy[bytes]:
    """Returns JSON of the right form, of which one field is of another kind."""
    fields = json.loads(whole.splitlines()[0].decode())
    return st.builds(
        lambda name, value: json.dumps({**fields, name: value}).encode() + b"\n",
        st.sampled_from(sorted(fields)),
        VALUES,
    )


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("logdir"))


@times(4)
@given(
    st.one_of(
        mutated(LINES, tokens=TOKENS),
        st.lists(mistaken(LINES), max_size=3).map(b"".join),
        st.binary(max_size=40),
    ),
    st.sampled_from([-1, 0, 200, 1000]),
)
@example(LINES.replace(b"0.5", b"NaN"), 1000)
@example(LINES + LINES, 1000)
@example(LINES.replace(b"100", b"-100"), 1000)
def test_evaluations(logdir: Path, raw: bytes, resume_step: int) -> None:
    path = logdir / selection.FILE
    path.write_bytes(raw)
    opened = attempt(selection.Selection, str(logdir), MONITOR, "max", 0, resume_step)
    assert not isinstance(opened, UserError), opened
    found = list(opened.evaluations)
    steps = [-1, *(evaluation.step for evaluation in found)]
    assert steps == sorted(set(steps))
    assert opened.last_step == steps[-1] <= max(resume_step, -1)
    assert raw.startswith(path.read_bytes())
    for mode in selection.MODES:
        best = selection.best(found, MONITOR, mode)
        assert best is None or math.isfinite(best.values[MONITOR])
        assert 0 <= selection.without_improvement(found, MONITOR, mode) <= len(found)
    found.append(Evaluation(1001, {"validation/loss": math.nan, MONITOR: 0.9}))
    with opened:
        opened.append(found[-1])
    # What comes behind is read, whatever stood before.
    with attempt(selection.Selection, str(logdir), MONITOR, "max", 0, 1001) as again:
        assert repr(again.evaluations) == repr(found)  # NaN is not equal to itself.


@times(4)
@given(
    st.one_of(mutated(REQUEST, tokens=TOKENS), mistaken(REQUEST), st.binary(max_size=40)),
    st.sampled_from([0, 300, 1 << 62]),
    st.one_of(st.none(), st.integers(0, 3)),
)
@example(b'{"step": 0, "patience": 9, "reason": "\\ud800"}', 0, 2)
def test_stop_requests(logdir: Path, raw: bytes, step: int, patience: int | None) -> None:
    path = logdir / early_stopping.FILE
    path.write_bytes(raw)
    asked = attempt(early_stopping.read, str(logdir))
    standing = attempt(early_stopping.standing, str(logdir), step, patience)
    if asked is None:
        assert standing is None
        return
    assert asked.reason.isprintable(), asked  # It goes to a terminal.
    if standing is not None:
        assert standing == asked
        assert standing.step <= step
        assert patience is None or 0 < patience <= standing.patience
    assert path.exists() == (standing is not None)


def whole_mark(logdir: Path) -> bytes:
    completion.write(Settings(logdir=str(logdir)), "model.ckpt-20")
    return (logdir / completion.FILE).read_bytes()


@times(4)
@given(st.data())
def test_end_marks(logdir: Path, data: Any) -> None:
    mark = whole_mark(logdir)
    (logdir / "model.ckpt-20.index").touch()
    raw = data.draw(st.one_of(mutated(mark, tokens=TOKENS), mistaken(mark), st.binary(max_size=40)))
    assert_is_complete_or_not(logdir, raw)


def test_end_mark_of_a_step_that_no_file_has(logdir: Path) -> None:
    mark = whole_mark(logdir)
    for number in (b"9" * 4000, b"-20", b"1e999", b"20.5", b'"../20"'):
        assert_is_complete_or_not(logdir, mark.replace(b'"step": 20', b'"step": ' + number))


def assert_is_complete_or_not(logdir: Path, raw: bytes) -> None:
    config = Settings(logdir=str(logdir))
    (logdir / completion.FILE).write_bytes(raw)
    assert attempt(completion.step, config) in (None, 20)
    found = attempt(completion.read, config.logdir)
    assert found is None or found["step"] >= 0
    completion.clear(config.logdir)
    assert attempt(completion.read, config.logdir) is None


@times(2)
@given(st.one_of(mutated(RUN, b"1\n", tokens=TOKENS), st.binary(max_size=40)))
@example(b"")
@example(b"../" * 99)
def test_ids_of_runs(logdir: Path, raw: bytes) -> None:
    (logdir / run_id.FILE).write_bytes(raw)
    found = attempt(run_id.read, str(logdir))
    # A second word is the id of the experiment.
    assert found is None or (found == raw.decode("ascii").split()[0] and len(found) <= 256)
    assert found is None or found.replace("-", "").replace("_", "").isalnum()
