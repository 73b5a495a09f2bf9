"""Downloads published datasets within a time limit; see docs/adr/0018-downloads-of-our-own.md."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator
from urllib.parse import urlsplit

from compat.cluster.access import is_loopback
from compat.datasets import idx
from compat.datasets.published import Published, verify
from compat.errors import UserError, reason_of

STALL_SECS = 10.0  # Seconds for which a mirror may be silent.
_CHUNK_BYTES = 1 << 16


class DownloadError(UserError):
    """A data set that none of its mirrors provides, or that cannot be stored."""


class TransferError(Exception):
    """A transfer that failed; the message has the reason in one line."""


def download(
    data: Published,
    names: Iterable[str],
    folder: Path,
    say: Callable[[str], None],
    limit_secs: float,
) -> None:
    """Downloads the named files of a data set, gzipped as they are served, into a folder.

    A file appears there only when it is complete and verified, also if several processes download
    at the same time. A mirror that has failed is not tried again. A terminal shows a progress bar.
    """
    deadline = time.monotonic() + limit_secs
    mirrors = list(data.mirrors)
    failures: list[str] = []
    for name in names:
        target = folder / (name + ".gz")
        while not os.path.isfile(target):
            if not mirrors:
                raise DownloadError("; ".join(failures))
            url = mirrors[0] + target.name
            try:
                _download_file(data, name, url, target, deadline)
            except (TransferError, idx.BrokenFileError) as error:
                failures.append(getattr(error, "finding", f"{url}: {error}"))
                del mirrors[0]
            except OSError as error:
                raise DownloadError(
                    f"{folder} cannot be written ({reason_of(error)}), expected a writable folder"
                ) from error
            else:
                say(f"downloaded {url} to {target} (SHA-256 of its contents verified)")


def _download_file(data: Published, name: str, url: str, target: Path, deadline: float) -> None:
    from tqdm import tqdm

    with named_when_whole(target) as partial:
        with transfer(url, deadline) as (num_bytes, chunks):
            target.parent.mkdir(parents=True, exist_ok=True)
            # `disable=None` shows a bar only on a terminal.
            with partial.open("xb") as stream, tqdm(
                total=num_bytes, desc=name, unit="B", unit_scale=True, leave=False, disable=None
            ) as progress:
                for chunk in chunks:
                    if stream.tell() + len(chunk) > idx.MAX_BYTES:
                        raise TransferError(f"more than {idx.MAX_BYTES:,} bytes")
                    stream.write(chunk)
                    progress.update(len(chunk))
        verify(data, {name: idx.read(partial, origin=url)})


@contextlib.contextmanager
def named_when_whole(target: Path) -> Iterator[Path]:
    """Yields a temporary path; renames the file to `target`, or removes it after an error."""
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        yield partial
        os.replace(str(partial), str(target))
    finally:
        if os.path.lexists(str(partial)):
            partial.unlink()


@contextlib.contextmanager
def transfer(url: str, deadline: float) -> Iterator[tuple[int | None, Iterator[bytes]]]:
    """Opens a URL; yields its number of bytes (None if unknown) and its chunks.

    The URL, and those of redirects, must use https, or http to this machine. Raises a
    `TransferError` with the reason of a failure, also if the transfer is not complete at
    `deadline`, in seconds of `time.monotonic`.

    The timeout of a socket covers neither the resolver nor a header that arrives byte by byte. So a
    thread makes the blocking calls, and the caller waits no longer than its limits. A thread that
    blocks longer is abandoned; it ends by its own timeout, a second later, or with the process.
    """
    arrivals: queue.Queue[Any] = queue.Queue()
    abandoned = threading.Event()
    threading.Thread(target=_receive, args=(url, arrivals, abandoned), daemon=True).start()

    def arrival() -> Any:
        remaining = deadline - time.monotonic()
        try:
            if remaining <= 0:
                raise queue.Empty  # The deadline also holds for a mirror that keeps sending.
            item = arrivals.get(timeout=min(STALL_SECS, remaining))
        except queue.Empty:
            raise TransferError(
                f"nothing came in {STALL_SECS:g} s"
                if remaining > STALL_SECS
                else "not done within the time limit"
            ) from None
        if isinstance(item, Exception):
            raise TransferError(_reason(item)) from item
        return item

    try:
        yield arrival(), iter(arrival, b"")
    finally:
        abandoned.set()


def _receive(url: str, arrivals: queue.Queue[Any], abandoned: threading.Event) -> None:
    """Downloads a URL; puts its length (None if unknown), its chunks and b"" into a queue.

    If the download fails, the error takes the place of b"". Stops if `abandoned` is set.
    """
    try:
        _check_scheme(url)
        opener = urllib.request.build_opener(_Redirects)
        with opener.open(url, timeout=STALL_SECS + 1) as response:
            length = response.headers.get("Content-Length")
            expected = None if length is None else int(length)
            arrivals.put(expected)
            received = 0
            # Stop at the length: a server may leave the connection open after the last byte.
            while received != expected and not abandoned.is_set():
                # `read1` returns the available bytes; `read` would wait for all of them.
                chunk = response.read1(_CHUNK_BYTES)
                if not chunk:
                    break
                received += len(chunk)
                arrivals.put(chunk)
        if expected is not None and received != expected:
            raise EOFError(f"ended after {received:,} of {expected:,} bytes")
        arrivals.put(b"")
    except Exception as error:  # Any error is passed to the reader, which raises it.
        arrivals.put(error)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects only to URLs with an allowed scheme."""

    def redirect_request(self, *request: Any) -> urllib.request.Request | None:
        _check_scheme(request[-1])  # The URL of the redirect.
        return super().redirect_request(*request)


def _check_scheme(url: str) -> None:
    """Raises a `ValueError` unless a URL uses https, or http to this machine.

    Others could read or change other transfers, and a file of this machine is no download.
    """
    parts = urlsplit(url)
    is_here = parts.scheme == "http" and is_loopback(parts.hostname or "")
    if parts.scheme != "https" and not is_here:
        raise ValueError(f"{url} is not https, and nothing else is taken")


def _reason(error: Exception) -> str:
    # The text of an HTTPError ("HTTP Error 404: Not Found") has more than its reason ("Not Found").
    is_wrapper = type(error) is urllib.error.URLError
    text = " ".join(str(getattr(error, "reason", error) if is_wrapper else error).split())
    return text or type(error).__name__
