"""What an earlier training has left in its log folder, from which a later one goes on."""

from __future__ import annotations

import io
import json
import os
import struct
from pathlib import Path
from typing import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compat.errors import UserError
from compat.tracking.mlflow import learning_curve, spool
from compat.tracking.tensorboard.eventfile import event_files, read_events
from compat.tracking.tensorboard.writer import TensorBoard
from tests.fuzz.conftest import attempt, mutated, times, words

pytestmark = pytest.mark.once

RECORDS = [
    {"kind": "start", "id": "6f", "experiment": "mnist", "run": None, "time": 1700000000000},
    {"kind": "params", "values": {"batch_size": 100}},
    {"kind": "metrics", "step": 100, "time": 1700000001000, "values": {"train/cost": 2.3}},
    {"kind": "artifact", "path": "/logs/model.ckpt-100.index", "folder": "checkpoint"},
    {"kind": "end", "status": "FINISHED", "time": 1700000002000},
]
SPOOL = "".join(json.dumps(record) + "\n" for record in RECORDS).encode()
JSON = (b"[]", b"3", b"null", b"{}", b'"x"', b"[" * 99_999, b"9" * 5000, b"1e999", b"\n", b"true")
# With fields of another kind.
MISTAKEN = st.builds(
    lambda record, field, value: json.dumps({**record, field: value}).encode() + b"\n",
    st.sampled_from(RECORDS),
    st.sampled_from(["kind", "step", "time", "values", "experiment", "path", "status"]),
    st.sampled_from([None, [], {}, {"a": []}, {"a": {}}, "x", -1, 1 << 70, True, 1.5, "start"]),
)


def framed(*events: bytes) -> bytes:
    """Returns an event file of any records, with the right checksums."""
    from tensorboard.summary.writer.record_writer import RecordWriter

    file = io.BytesIO()
    writer = RecordWriter(file)
    for event in events:
        writer.write(event)
    return file.getvalue()


def an_event(step: int) -> bytes:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    value = Summary.Value(tag="cost", simple_value=0.5)
    event: bytes = Event(step=step, summary=Summary(value=[value])).SerializeToString()
    return event


def a_giant() -> bytes:
    """Returns the beginning of a record that claims to be larger than any memory."""
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

    length = struct.pack("<Q", (1 << 64) - 5)
    return length + struct.pack("<I", masked_crc32c(length)) + b"\0" * 40


EVENTS = [an_event(step) for step in (1, 2, 3)]


@pytest.fixture(scope="module")
def logdirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A new folder at each turn."""
    return (Path(tmp_path_factory.mktemp("logdir")) for _ in iter(int, 1))


def resume(logdir: str, step: int) -> None:
    """Goes on from a checkpoint, as far as events are concerned."""
    said: list[str] = []
    board = TensorBoard(logdir, resume_step=step, say=said.append)
    board.scalars(step + 1, {"cost": 1.0})
    board.close()
    assert said == []


@times(2)
@given(
    st.one_of(
        mutated(framed(*EVENTS), tokens=(b"\0" * 12, framed(EVENTS[0]))),
        st.lists(mutated(*EVENTS), max_size=4).map(lambda events: framed(*events)),
        st.binary(max_size=40),
    ),
    st.integers(0, 4),
)
@example(framed(*EVENTS) + a_giant(), 2)
def test_event_files(logdirs: Iterator[Path], raw: bytes, step: int) -> None:
    logdir = next(logdirs)
    path = logdir / "events.out.tfevents.0000000001.pc-01.1.0"
    path.write_bytes(raw)
    before = [record for record, _ in attempt(lambda: list(read_events(str(path))))]
    assert attempt(resume, str(logdir), step) is None
    after = [record for record, _ in read_events(str(path))]
    assert [record for record in before if record in after] == after
    assert b"".join(after) == path.read_bytes()
    assert sorted(os.listdir(logdir)) == sorted(
        ["tensorboard.lock", *map(os.path.basename, event_files(str(logdir)))]
    )


@given(words("0000000001.pc-01.1.0", tokens=("9" * 30,)).map(lambda text: text.replace("/", "")))
@example("².pc-01")
@example("9" * 200)
def test_names_of_event_files(logdirs: Iterator[Path], name: str) -> None:
    logdir = next(logdirs)
    name = os.fsdecode(os.fsencode("tfevents." + name.replace("\0", ""))[:240])
    (logdir / name).write_bytes(framed(*EVENTS))
    assert attempt(resume, str(logdir), 2) is None


@times(5)
@given(
    st.one_of(
        mutated(SPOOL, tokens=JSON),
        st.lists(MISTAKEN, max_size=4).map(b"".join),
        st.binary(max_size=40),
    ),
    mutated(b"0", str(len(SPOOL)).encode(), tokens=(b"-", b"9" * 5000, b"\xff", b"\xc2\xb2", b"9")),
)
@example(b"[" * 99_999 + b"\n", b"")
@example(b"3\n{}\n", b"-1")
@example(SPOOL, b"99999999999")
@example(b'{"kind": "metrics"}\n', b"\xff")
def test_spool(spooled: Path, raw: bytes, offset: bytes) -> None:
    folder = str(spooled)
    (spooled / spool.SPOOL).write_bytes(raw)
    (spooled / "tracking.offset").write_bytes(offset)
    assert 0 <= attempt(spool.delivered, folder) <= len(raw)
    assert attempt(spool.pending, folder) <= raw.count(b"\n")
    assert isinstance(attempt(spool.abandoned, folder), (int, type(None)))
    assert isinstance(attempt(learning_curve.series, folder), dict)
    writing = attempt(spool.Spool, folder)
    assert not isinstance(writing, UserError)
    writing.append("end", status="FINISHED", time=1)
    writing.close()
    # What comes behind is read, whatever stands before.
    assert [record for record, _ in spool.read(folder)][-1]["time"] == 1
    assert attempt(spool.abandoned, folder) is None


@pytest.fixture(scope="module")
def spooled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("spool"))
