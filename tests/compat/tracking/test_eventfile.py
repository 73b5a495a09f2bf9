from __future__ import annotations

import os
import time

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

from compat.tracking.tensorboard.eventfile import EventFile, event_files, read_events, trim


def event(step):
    return Event(step=step, summary=Summary(value=[Summary.Value(tag="a", simple_value=step)]))


@pytest.fixture
def path(tmp_path):
    file = EventFile(str(tmp_path))
    for step in range(1, 6):
        file.write(event(step))
    file.close()
    return file.path


def steps(path):
    return [event.step for _, event in read_events(path)]


def test_what_is_written_is_read(path):
    events = [event for _, event in read_events(path)]
    assert events[0].file_version == "brain.Event:2"
    assert events[3] == event(3)
    assert steps(path) == [0, 1, 2, 3, 4, 5]


def test_tensorflow_finds_the_checksums_right(path):
    from compat import tf1

    assert [event.step for event in tf1.train.summary_iterator(path)] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("missing", [1, 3, 10, 20])
def test_a_torn_last_record_is_dropped(path, missing):
    os.truncate(path, os.path.getsize(path) - missing)
    assert steps(path) == [0, 1, 2, 3, 4]
    trim(path, lambda event: True)
    with open(path, "rb") as file:
        assert file.read() == b"".join(record for record, _ in read_events(path))


def test_nothing_but_zeros_as_after_a_power_cut_is_dropped(path):
    with open(path, "ab") as file:
        file.write(b"\0" * 4096)
    trim(path, lambda event: True)
    assert steps(path) == [0, 1, 2, 3, 4, 5]
    assert os.path.getsize(path) < 4096


def test_trimming_keeps_what_it_is_told_and_leaves_nothing_behind(path):
    trim(path, lambda event: event.step <= 2)
    assert steps(path) == [0, 1, 2]
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]


def test_an_untouched_file_stays_the_same_file(path):
    before = os.stat(path)
    trim(path, lambda event: True)
    assert os.stat(path).st_ino == before.st_ino


def test_a_new_file_sorts_behind_those_of_a_clock_ahead(tmp_path):
    ahead = f"events.out.tfevents.{int(time.time()) + 5000:010d}.zzz.1.0"
    (tmp_path / ahead).write_bytes(b"")
    first, second = EventFile(str(tmp_path)), EventFile(str(tmp_path))
    assert event_files(str(tmp_path)) == [str(tmp_path / ahead), first.path, second.path]
    first.close()
    second.close()
