"""No network, or none to speak of: the remedies are told, or the digits taken."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Callable

import pytest

from compat.datasets.download import DownloadError
from compat.datasets.load import choose, obtain

if TYPE_CHECKING:
    from tests.compat.datasets.conftest import Sample, Server

Serve = Callable[[str], "Server"]


def test_without_a_network_the_error_says_what_to_do(
    made: Sample, refusing: str, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    with pytest.raises(DownloadError) as raised:
        obtain(made.served_by(refusing), folder, say=print)
    assert re.match(
        f"^Made is not in {folder} nor in {tmp_path}/home/.keras/datasets, and could not be "
        f"downloaded: {refusing}.*Connection refused; name a folder that holds it with --data_dir, "
        "or use --dataset=digits$",
        str(raised.value),
    )
    assert not folder.exists()  # a mistyped name leaves no folder behind


def test_auto_downloads(made: Sample, serve: Serve, tmp_path: Path) -> None:
    said: list[str] = []
    dataset = choose(made.served_by(serve("whole").url), None, say=said.append)
    cache = tmp_path / "home" / ".cache" / "compat-experiments" / "made"
    assert dataset.name == "made"
    made.assert_downloaded(cache)
    assert len(said) == 5
    assert said[-1] == f"the data set is Made, from {cache}"


def test_auto_falls_back_at_once_and_says_why(made: Sample, refusing: str) -> None:
    said: list[str] = []
    start = time.monotonic()
    dataset = choose(made.served_by(refusing, refusing), None, say=said.append)
    assert time.monotonic() - start < 60
    assert dataset.name == "digits"
    (line,) = said
    assert line.startswith(
        "WARNING: the data set is scikit-learn's digits (1,797 images), NOT Made: Made is not in "
    )
    assert "Connection refused" in line


def test_auto_falls_back_when_nobody_answers(
    made: Sample, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compat.datasets.download.STALL_SECS", 1.0)
    said: list[str] = []
    published = made.served_by(serve("silent").url, serve("dripping").url)
    start = time.monotonic()
    dataset = choose(published, None, say=said.append, limit_secs=1.5)
    assert time.monotonic() - start < 60
    assert dataset.name == "digits"
    assert "not done within the time limit" in said[0]


def test_a_home_that_cannot_be_written(made: Sample, serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "home").write_bytes(b"")  # no folder can be made below a file, by nobody
    folder = made.write(tmp_path / "data")
    assert obtain(made.published, folder, say=print).name == "made"

    published = made.served_by(serve("whole").url)
    cache = tmp_path / "home" / ".cache" / "compat-experiments" / "made"
    sentence = f"downloaded: {cache} cannot be written \\(Not a directory\\), expected a writable"
    with pytest.raises(DownloadError, match=sentence):
        obtain(published, None, say=print)
    assert choose(published, None, say=print).name == "digits"
