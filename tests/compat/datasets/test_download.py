"""Mirrors on loopback, well-behaved and otherwise: whole and verified files, or none."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Callable

import pytest

from compat.datasets.download import DownloadError, TransferError, download, transfer
from compat.datasets.load import obtain
from compat.datasets.published import FASHION_MNIST, FILES, MNIST, Published

if TYPE_CHECKING:
    from tests.compat.datasets.conftest import Sample, Server

pytestmark = pytest.mark.once

Serve = Callable[[str], "Server"]


@pytest.mark.parametrize("answer", ["whole", "without_length", "kept_open", "in_pieces"])
def test_a_good_mirror(
    made: Sample,
    serve: Serve,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    answer: str,
) -> None:
    server = serve(answer)
    folder = tmp_path / "new" / "folder"
    said: list[str] = []
    published = made.served_by(server.url)
    dataset = obtain(published, folder, say=said.append)
    assert dataset.source == str(folder)
    made.assert_downloaded(folder)
    assert said == [
        f"downloaded {server.url}{name}.gz to {folder / name}.gz (SHA-256 of its contents verified)"
        for name in FILES
    ]
    assert capfd.readouterr() == ("", "")  # no bar where there is no terminal

    again = obtain(published, folder, say=said.append)
    assert again.checksum == dataset.checksum
    assert len(server.asked) == len(said) == 4
    # As readable as any file that the user makes.
    assert (folder / (FILES[0] + ".gz")).stat().st_mode == Path(
        str(made.write(tmp_path / "other") / (FILES[0] + ".gz"))
    ).stat().st_mode


def test_only_what_is_missing_is_downloaded(made: Sample, serve: Serve, tmp_path: Path) -> None:
    server = serve("whole")
    made.write(tmp_path, "mixed")
    (tmp_path / FILES[1]).unlink()
    obtain(made.served_by(server.url), tmp_path, say=print)
    assert server.asked == [f"/{FILES[1]}.gz"]
    assert (tmp_path / (FILES[1] + ".gz")).is_file()


BAD = [
    ("truncated", r"ended after [\d,]+ of [\d,]+ bytes"),
    ("truncated_without_length", r"cannot be read \(.*\), expected a whole gzip"),
    ("changed", "is not the published Made: the SHA-256 of its uncompressed contents is "),
    ("missing", "HTTP Error 404: Not Found"),
    ("rubbish", "SSH-2.0-OpenSSH"),
    ("wrong_length", "invalid literal for int.*many"),
    ("silent", "nothing came in 1 s"),
    ("stalling", "nothing came in 1 s"),
    ("dripping_header", "nothing came in 1 s"),
    ("redirected", "http://192.0.2.1/.* is not https, and nothing else is taken$"),
]


@pytest.mark.parametrize(("answer", "reason"), BAD)
def test_a_bad_mirror_leaves_nothing_and_gives_way_to_the_next(
    made: Sample,
    serve: Serve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    reason: str,
) -> None:
    monkeypatch.setattr("compat.datasets.download.STALL_SECS", 1.0)
    bad, good = serve(answer), serve("whole")
    with pytest.raises(DownloadError, match=f"^{bad.url}{FILES[0]}.gz:? {reason}") as raised:
        download(made.served_by(bad.url), FILES, tmp_path / "bad", say=print, limit_secs=20)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "bad").exists() or not list((tmp_path / "bad").iterdir())

    published = made.served_by(bad.url, good.url)
    download(published, FILES, tmp_path / "good", say=print, limit_secs=20)
    made.assert_downloaded(tmp_path / "good")
    assert bad.asked == [f"/{FILES[0]}.gz"] * 2  # once in each download


def test_redirects_are_followed(made: Sample, serve: Serve, tmp_path: Path) -> None:
    server = serve("redirected_here")
    download(made.served_by(server.url), FILES, tmp_path, say=print, limit_secs=20)
    made.assert_downloaded(tmp_path)


@pytest.mark.parametrize("url", ["http://192.0.2.1/x", "ftp://127.0.0.1/x", "file:///etc/passwd"])
def test_only_https_is_asked(url: str) -> None:
    asked = transfer(url, time.monotonic() + 10)
    with pytest.raises(TransferError, match="is not https, and nothing else is taken"):
        asked.__enter__()


@pytest.mark.parametrize("published", [MNIST, FASHION_MNIST], ids=lambda published: published.name)
def test_published_data_are_served_by_https_and_have_checksums(published: Published) -> None:
    assert published.mirrors
    assert all(url.startswith("https://") for url in published.mirrors)
    assert [len(published.sha256[name]) for name in FILES] == [64] * 4


def test_all_reasons_are_told(made: Sample, serve: Serve, refusing: str, tmp_path: Path) -> None:
    server = serve("missing")
    with pytest.raises(DownloadError) as raised:
        download(made.served_by(server.url, refusing), FILES, tmp_path, say=print, limit_secs=20)
    assert re.match(
        f"^{server.url}{FILES[0]}.gz: HTTP Error 404: Not Found; "
        f"{refusing}{FILES[0]}.gz: .*Connection refused$",
        str(raised.value),
    )


@pytest.mark.parametrize("answer", ["dripping", "dripping_header", "silent"])
def test_the_time_limit_is_for_all_together(
    made: Sample, serve: Serve, tmp_path: Path, answer: str
) -> None:
    servers = [serve(answer), serve(answer)]
    start = time.monotonic()
    with pytest.raises(DownloadError, match="not done within the time limit"):
        download(
            made.served_by(*(server.url for server in servers)),
            FILES,
            tmp_path,
            say=print,
            limit_secs=1,
        )
    assert time.monotonic() - start < 60
    assert not list(tmp_path.iterdir())


def test_the_time_limit_holds_for_a_mirror_that_pours(serve: Serve) -> None:
    url = f"{serve('whole').url}{FILES[0]}.gz"
    with transfer(url, time.monotonic() + 2) as (num_bytes, chunks):
        assert num_bytes
        time.sleep(2.1)  # all has come meanwhile, but too late
        with pytest.raises(TransferError, match="^not done within the time limit$"):
            next(chunks)
