"""Data sets to load, and servers to download them from."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import socket
import threading
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler as Request
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np
import pytest

from compat.datasets import digits, idx
from compat.datasets.published import (
    FILES,
    MNIST,
    TEST_IMAGES,
    TEST_LABELS,
    TRAIN_IMAGES,
    TRAIN_LABELS,
    Published,
)

SHARED_MNIST = Path(__file__).resolve().parents[4] / "shared" / "mnist"


@dataclass(frozen=True)
class Sample:
    """A published data set, as the bytes of its files."""

    published: Published
    contents: Mapping[str, bytes]
    gzipped: Mapping[str, bytes]

    def write(self, folder: Path, form: str = "gzip", names: Sequence[str] = FILES) -> Path:
        """Stores files of the data set in a folder, as "gzip", "plain", "mixed" or "npz"."""
        folder.mkdir(parents=True, exist_ok=True)
        if form == "npz":
            np.savez(folder / "mnist.npz", **self.arrays())
            return folder
        for name in names:
            if form == "plain" or (form == "mixed" and "labels" in name):
                (folder / name).write_bytes(self.contents[name])
            else:
                (folder / (name + ".gz")).write_bytes(self.gzipped[name])
        return folder

    def assert_downloaded(self, folder: Path) -> None:
        """All files are there, as they were served, and nothing else."""
        held = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert held == {name + ".gz": self.gzipped[name] for name in FILES}

    def arrays(self) -> dict[str, Any]:
        """The data set as Keras stores it: uint8, by Keras's names."""
        files = {name: idx.IdxFile(name, contents) for name, contents in self.contents.items()}
        return {
            "x_train": idx.images(files[TRAIN_IMAGES]),
            "y_train": idx.labels(files[TRAIN_LABELS]).astype(np.uint8),
            "x_test": idx.images(files[TEST_IMAGES]),
            "y_test": idx.labels(files[TEST_LABELS]).astype(np.uint8),
        }

    def served_by(self, *mirrors: str) -> Published:
        """The data set as published on other mirrors."""
        return replace(self.published, mirrors=mirrors)


def _made() -> Sample:
    digit_set = digits.load()
    contents = {
        TRAIN_IMAGES: idx.encode(digit_set.train.images[:600]),
        TRAIN_LABELS: idx.encode(digit_set.train.labels[:600].astype(np.uint8)),
        TEST_IMAGES: idx.encode(digit_set.test.images[:100]),
        TEST_LABELS: idx.encode(digit_set.test.labels[:100].astype(np.uint8)),
    }
    published = Published(
        name="made",
        title="Made",
        sha256={name: hashlib.sha256(data).hexdigest() for name, data in contents.items()},
        mirrors=(),
        num_validation=50,
        keras_archive="mnist.npz",
    )
    return Sample(published, contents, {name: gzip.compress(contents[name]) for name in FILES})


def _mnist() -> Sample:
    gzipped = {name: (SHARED_MNIST / (name + ".gz")).read_bytes() for name in FILES}
    contents = {name: gzip.decompress(gzipped[name]) for name in FILES}
    return Sample(replace(MNIST, mirrors=()), contents, gzipped)


_SAMPLES = {"made": _made}
if SHARED_MNIST.is_dir():
    _SAMPLES["mnist"] = _mnist


@pytest.fixture(scope="session")
def made() -> Sample:
    """A small data set made from the digits."""
    return _made()


@pytest.fixture(scope="session", params=sorted(_SAMPLES))
def sample(request: pytest.FixtureRequest) -> Sample:
    """The made data set, and the real one where the machine has it."""
    return _SAMPLES[request.param]()


@dataclass
class Server:
    """A mirror on loopback, which counts what it was asked for."""

    url: str
    asked: list[str]


# How a mirror answers: handler, the file asked for, and what ends the test.


def whole(handler: Request, body: bytes, over: threading.Event) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def without_length(handler: Request, body: bytes, over: threading.Event) -> None:
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(body)


def kept_open(handler: Request, body: bytes, over: threading.Event) -> None:
    whole(handler, body, over)
    over.wait(30)


def in_pieces(handler: Request, body: bytes, over: threading.Event) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    for start in range(0, len(body), 1 + len(body) // 10):
        handler.wfile.write(body[start : start + 1 + len(body) // 10])
        over.wait(0.01)


def truncated(handler: Request, body: bytes, over: threading.Event) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])


def truncated_without_length(handler: Request, body: bytes, over: threading.Event) -> None:
    without_length(handler, body[: len(body) // 2], over)


def changed(handler: Request, body: bytes, over: threading.Event) -> None:
    contents = gzip.decompress(body)
    whole(handler, gzip.compress(contents[:-1] + bytes([9 - contents[-1] % 9])), over)


def missing(handler: Request, body: bytes, over: threading.Event) -> None:
    handler.send_error(404)


def rubbish(handler: Request, body: bytes, over: threading.Event) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH\r\n\r\n")


def wrong_length(handler: Request, body: bytes, over: threading.Event) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "many")
    handler.end_headers()


def silent(handler: Request, body: bytes, over: threading.Event) -> None:
    over.wait(30)


def stalling(handler: Request, body: bytes, over: threading.Event) -> None:
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(body[:100])
    over.wait(30)


def dripping(handler: Request, body: bytes, over: threading.Event) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    for start in range(len(body)):
        handler.wfile.write(body[start : start + 1])
        if over.wait(0.1):
            return


def dripping_header(handler: Request, body: bytes, over: threading.Event) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Endless: ")
    while not over.wait(0.1):
        handler.wfile.write(b"x")


def redirected(handler: Request, body: bytes, over: threading.Event) -> None:
    handler.send_response(302)
    handler.send_header("Location", "http://192.0.2.1/" + handler.path.rsplit("/", 1)[1])
    handler.end_headers()


def redirected_here(handler: Request, body: bytes, over: threading.Event) -> None:
    if handler.path.startswith("/moved/"):
        whole(handler, body, over)
        return
    handler.send_response(302)
    handler.send_header("Location", "/moved" + handler.path)
    handler.end_headers()


ANSWERS = {
    answer.__name__: answer
    for answer in (
        whole,
        without_length,
        kept_open,
        in_pieces,
        truncated,
        truncated_without_length,
        changed,
        missing,
        rubbish,
        wrong_length,
        silent,
        stalling,
        dripping,
        dripping_header,
        redirected,
        redirected_here,
    )
}


@pytest.fixture()
def serve(made: Sample) -> Iterator[Callable[[str], Server]]:
    """Starts mirrors of the made data set, each with its own manner of answering."""
    over = threading.Event()
    with contextlib.ExitStack() as stack:

        def start(answer: str) -> Server:
            asked: list[str] = []

            class Handler(Request):
                def do_GET(self) -> None:
                    asked.append(self.path)
                    name = self.path.rsplit("/", 1)[1][: -len(".gz")]
                    # The client may hang up at any time.
                    with contextlib.suppress(ConnectionError):
                        ANSWERS[answer](self, made.gzipped[name], over)

                def log_message(self, format: str, *args: object) -> None:
                    pass

            server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            server.daemon_threads = True
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            stack.callback(thread.join, 10)
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            stack.callback(over.set)
            return Server(f"http://127.0.0.1:{server.server_address[1]}/", asked)

        yield start


@pytest.fixture()
def refusing() -> Iterator[str]:
    """A mirror that nobody serves: its port is taken, but not listened on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/"


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a user who has neither data sets nor a cache."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("KERAS_HOME", "MNIST_DATA_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
