"""`tf.contrib.learn.datasets.base.maybe_download`: complete and by https, or not at all."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Iterator

import pytest

from compat.contrib.learn.datasets import maybe_download
from compat.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.once
TABLE = b"3,2,a,b\n" * 9999
# Addresses for documentation, where nobody is.
ELSEWHERE = "http://192.0.2.1/iris.csv"


class Handler(BaseHTTPRequestHandler):
    """Serves a table, cuts it short, or sends elsewhere."""

    def do_GET(self) -> None:
        self.send_response(302 if "elsewhere" in self.path else 200)
        self.send_header("Location", ELSEWHERE)
        self.send_header("Content-Length", str(len(TABLE)))
        self.end_headers()
        self.wfile.write(TABLE[:99] if "short" in self.path else TABLE)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(60)


def test_a_file_is_downloaded_once(
    tmp_path: Path, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "data"
    path = str(folder / "iris.csv")
    assert maybe_download("iris.csv", str(folder), address + "/iris.csv") == path
    assert capsys.readouterr().out == f"Successfully downloaded iris.csv {len(TABLE)} bytes.\n"
    assert [file.read_bytes() for file in folder.iterdir()] == [TABLE]
    assert maybe_download("iris.csv", str(folder), ELSEWHERE) == path  # It is there.


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (ELSEWHERE, f"{ELSEWHERE} is not https"),
        ("ftp://192.0.2.1/iris.csv", "is not https"),
        ("file:///etc/hostname", "is not https"),
        ("/etc/hostname", "is not https"),
        ("{address}/elsewhere", f"{ELSEWHERE} is not https"),
        ("{address}/short", "ended after 99 of"),
    ],
)
def test_what_is_refused_leaves_nothing(
    tmp_path: Path, address: str, url: str, reason: str
) -> None:
    with pytest.raises(UserError) as caught:
        maybe_download("iris.csv", str(tmp_path), url.format(address=address))
    assert reason in str(caught.value)
    assert str(caught.value).endswith(f"; put it at {tmp_path / 'iris.csv'} by hand")
    assert list(tmp_path.iterdir()) == []
