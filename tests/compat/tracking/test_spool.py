from __future__ import annotations

import json
import os
import pathlib
import resource

import pytest

from compat.errors import UserError
from compat.tracking.mlflow import learning_curve, spool


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path)


def test_records_are_read_in_order_from_any_offset(folder):
    writing = spool.Spool(folder)
    writing.append("tags", values={"a": "ü"})
    writing.append("metrics", step=1, time=2, values={"cost": float("inf")})
    writing.close()
    (first, behind), (second, end) = spool.read(folder)
    assert first == {"kind": "tags", "values": {"a": "ü"}}
    assert second["values"] == {"cost": float("inf")}
    assert list(spool.read(folder, behind)) == [(second, end)]
    assert end == os.path.getsize(os.path.join(folder, spool.SPOOL))


def test_what_was_delivered_is_remembered(folder):
    writing = spool.Spool(folder)
    for step in range(3):
        writing.append("metrics", step=step, time=0, values={})
    assert spool.pending(folder) == 3
    spool.set_delivered(folder, next(behind for _, behind in spool.read(folder)))
    assert spool.pending(folder) == 2
    writing.close()


def test_without_the_spool_nothing_was_delivered(folder):
    spool.set_delivered(folder, 7)
    assert spool.delivered(folder) == 0


def test_half_a_record_waits_and_is_skipped_after_a_restart(folder):
    writing = spool.Spool(folder)
    writing.append("tags", values={"a": "1"})
    writing.close()
    path = pathlib.Path(folder, spool.SPOOL)
    with open(path, "ab") as file:
        file.write(b'{"kind": "metr')
    assert [r["kind"] for r, _ in spool.read(folder)] == ["tags"]
    writing = spool.Spool(folder)
    writing.append("tags", values={"a": "2"})
    writing.close()
    assert [r["values"]["a"] for r, _ in spool.read(folder)] == ["1", "2"]
    assert json.loads(path.read_text().splitlines()[-1])


@pytest.fixture
def room():
    """Limits how long a file may become, as a full disk does; the limit is lifted in the end."""
    _, most = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_record_without_room_is_an_error_and_does_not_spoil_the_next(folder, room):
    writing = spool.Spool(folder)
    writing.append("tags", values={"a": "1"})
    room(os.path.getsize(os.path.join(folder, spool.SPOOL)) + 60)
    with pytest.raises(OSError, match="too large"):
        writing.append("tags", values={"a": "2" * 60})
    writing.append("tags", values={"a": "3"})
    writing.close()
    assert [r["values"]["a"] for r, _ in spool.read(folder)] == ["1", "3"]


def test_one_training_writes_a_folder(folder):
    writing = spool.Spool(folder)
    with pytest.raises(UserError, match="is being tracked by another training; expected one"):
        spool.Spool(folder)
    writing.close()
    spool.Spool(folder).close()


def test_a_training_is_abandoned_if_it_is_gone_without_an_end(folder):
    writing = spool.Spool(folder)
    writing.append("start", id="6f", experiment="mnist", run=None, time=5)
    assert spool.abandoned(folder) is None
    writing.close()
    assert spool.abandoned(folder) == 5
    writing = spool.Spool(folder)
    writing.append("end", status="FINISHED", time=9)
    writing.close()
    assert spool.abandoned(folder) is None


def test_the_curve_has_no_orphans_and_needs_a_measure(folder):
    writing = spool.Spool(folder)
    writing.append("metrics", step=1, time=0, values={"speed": 1.0})
    assert learning_curve.draw(folder) is None
    for step, value in ((1, 1.0), (2, 2.0), (3, 3.0), (2, 20.0)):
        writing.append("metrics", step=step, time=0, values={"train/cost": value})
    writing.append("metrics", step=3, time=0, values={"test/accuracy": float("nan")})
    writing.close()
    assert learning_curve.series(folder)["train/cost"] == [(1, 1.0), (2, 20.0)]
    path = learning_curve.draw(folder)
    assert pathlib.Path(path).read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("measure", ["loss", "critic", "tower_0/loss"])
def test_the_curve_draws_a_measure_of_any_name(folder, measure):
    writing = spool.Spool(folder)
    for split in ("train", "validation"):
        writing.append("metrics", step=1, time=0, values={f"{split}/{measure}": 1.0})
    writing.close()
    assert learning_curve.draw(folder)
