"""The bytes behind a URL, within a time that holds whatever the server or the resolver does.

And the file for them, which has its name when it is whole.
"""

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
from typing import IO, Any, Iterator
from urllib.parse import urlsplit

from compat.cluster.access import is_loopback

_CHUNK_BYTES = 1 << 16


class TransferError(Exception):
    """A transfer that failed: the message says why, in one line."""


@contextlib.contextmanager
def named_when_whole(target: Path) -> Iterator[Path]:
    """Yields another path, whose file becomes `target` if the body ends well, and else goes."""
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}.part")
    try:
        yield partial
        os.replace(str(partial), str(target))
    finally:
        if os.path.lexists(str(partial)):
            partial.unlink()


@contextlib.contextmanager
def transfer(
    url: str, deadline: float, stall_secs: float
) -> Iterator[tuple[int | None, Iterator[bytes]]]:
    """Opens a URL; yields the number of its bytes, if the server says so, and them in chunks.

    A socket's timeout covers neither the resolver nor a header that comes byte by byte. So a thread
    does what may block, and who reads here waits no longer than said; a thread that still blocks
    then is abandoned, and ends by its own timeout, a second later, or with the process.

    Args:
      url: what to get, by https; by http from this machine only. So are redirects.
      deadline: when the transfer must be over, in seconds of `time.monotonic`.
      stall_secs: how long to wait for the answer's beginning, and then from chunk to chunk.

    Raises:
      TransferError: there was no answer in time, or it was a failure, or it was cut short.
    """
    arrivals: queue.Queue[Any] = queue.Queue()
    abandoned = threading.Event()
    threading.Thread(
        target=_receive, args=(url, stall_secs + 1, arrivals, abandoned), daemon=True
    ).start()

    def arrival() -> Any:
        left = deadline - time.monotonic()
        try:
            if left <= 0:
                raise queue.Empty  # whatever has come by now: a mirror may also pour for ever
            item = arrivals.get(timeout=min(stall_secs, left))
        except queue.Empty:
            raise TransferError(
                f"nothing came in {stall_secs:g} s"
                if left > stall_secs
                else "not done within the time limit"
            ) from None
        if isinstance(item, Exception):
            raise TransferError(_reason(item)) from item
        return item

    try:
        yield arrival(), iter(arrival, b"")
    finally:
        abandoned.set()


def _receive(
    url: str, timeout: float, arrivals: queue.Queue[Any], abandoned: threading.Event
) -> None:
    """Puts the length (None if unknown), chunks, then b""; or what went wrong, at any point."""
    try:
        _check_scheme(url)
        opener = urllib.request.build_opener(_Redirects)
        with opener.open(url, timeout=timeout) as response:
            length = response.headers.get("Content-Length")
            expected = None if length is None else int(length)
            arrivals.put(expected)
            received = 0
            # By length too: a server may leave the connection open after the last byte.
            while received != expected and not abandoned.is_set():
                chunk = response.read1(_CHUNK_BYTES)  # what is there: `read` waits for all of it
                if not chunk:
                    break
                received += len(chunk)
                arrivals.put(chunk)
        if expected is not None and received != expected:
            raise EOFError(f"ended after {received:,} of {expected:,} bytes")
        arrivals.put(b"")
    except Exception as error:  # whatever it is, it crosses to the reader, who raises it
        arrivals.put(error)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to where a URL may lead."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Any,
        newurl: str,
    ) -> urllib.request.Request | None:
        _check_scheme(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_scheme(url: str) -> None:
    """Refuses what others could read or change on its way, and files of this machine."""
    parts = urlsplit(url)
    is_here = parts.scheme == "http" and is_loopback(parts.hostname or "")
    if parts.scheme != "https" and not is_here:
        raise ValueError(f"{url} is not https, and nothing else is taken")


def _reason(error: Exception) -> str:
    # An HTTPError says more itself ("HTTP Error 404: Not Found") than its reason ("Not Found").
    is_wrapper = type(error) is urllib.error.URLError
    text = " ".join(str(getattr(error, "reason", error) if is_wrapper else error).split())
    return text or type(error).__name__
