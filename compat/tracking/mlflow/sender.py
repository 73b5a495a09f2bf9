"""Sends the spool of a log folder to MLflow, in a separate process.

    python -m compat.tracking.mlflow.sender LOGDIR --tracking_uri=http://127.0.0.1:5000

sends the records of a run that have not been delivered, and with `--state` counts them. `Tracker`
starts it with `--follow`, until its standard input ends. A run that ends without a status gets the
status FAILED.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
import threading
import time
from typing import Any

from compat._tensorflow.release import deferred
from compat.checkpoint.folder_lock import remove_abandoned
from compat.errors import UserError
from compat.tracking.files import lock
from compat.tracking.mlflow import learning_curve, spool
from compat.tracking.mlflow.stores import artifact_root, discard_databases, store_uri
from compat.tracking.mlflow.tracker import LOG, REFUSED
from compat.tracking.redaction import RedactedStream

_POLL_SECS = 1.0
_NICE = 10
_LONGEST_WAIT_SECS = 30.0
_FOLLOWING_TIMEOUT_SECS = 30  # Timeout of an HTTP request.
_ALONE_TIMEOUT_SECS = 60


def _await_end(logdir: str, patience_secs: float, over: threading.Event) -> None:
    """Waits for the end of the run, and draws its learning curve.

    The process ends `patience_secs` later at the latest. This function runs in a thread, since the
    delivery may wait for a server without a time limit.
    """
    sys.stdin.buffer.read()
    _set_priority(0)
    over.set()
    limit = threading.Timer(patience_secs, _end_at_once)
    limit.daemon = True
    limit.start()
    _draw(logdir)


def _end_at_once() -> None:
    try:
        discard_databases()
    finally:
        os._exit(1)


def _follow(delivery: Any, over: threading.Event) -> None:
    """Delivers records until training ends, and then the remaining ones."""
    wait = _POLL_SECS
    while not over.is_set():
        delivered = delivery.attempt(over=False)
        wait = _POLL_SECS if delivered else min(2 * wait, _LONGEST_WAIT_SECS)
        over.wait(wait)
    # `_await_end` ends the process.
    while not delivery.attempt(over=True) and not delivery.is_hopeless:
        time.sleep(_POLL_SECS)


def _draw(logdir: str) -> None:
    """Draws the run's learning curve; an error must not prevent the delivery."""
    try:
        if spool.joined(logdir) is None:
            learning_curve.draw(logdir)
    except Exception as error:
        _print(f"no learning curve was drawn: {error}")


def main() -> int:
    """Runs the command line; returns 0, 1 if records are left, or `REFUSED` if any was refused."""
    args = _arguments()
    logdir = os.path.abspath(args.logdir)
    following = args.follow is not None
    over = threading.Event()
    ending = threading.Thread(target=_await_end, args=(logdir, args.follow, over), daemon=True)
    if following:
        _set_priority(_NICE)
        ending.start()
    if not os.path.exists(os.path.join(logdir, spool.SPOOL)):
        raise UserError(
            f"log folder {args.logdir!r} holds no {spool.SPOOL}; expected that of a run with "
            "MLflow; give its folder"
        )
    if args.state:
        return _say_state(logdir)
    training = spool.joined(logdir) or logdir
    while (
        not over.is_set() and following and not os.path.exists(os.path.join(training, spool.SPOOL))
    ):
        over.wait(_POLL_SECS)  # The record of the joined run will name the store.
    uri = store_uri(args.tracking_uri, training)
    _prepare_mlflow(uri, _FOLLOWING_TIMEOUT_SECS if following else _ALONE_TIMEOUT_SECS)
    with lock(
        os.path.join(logdir, spool.SENDING),
        f"log folder {logdir!r} is being sent by another process; expected one sender a folder;"
        " wait until it has ended",
        patience=math.inf if following else 0.0,
    ):
        # Loading pandas takes a sixth of the time, and nothing here uses it.
        with deferred("pandas"):
            from compat.tracking.mlflow.delivery import Delivery  # imports MLflow

        remove_abandoned(logdir)  # Remove the picture of a sender that was killed.
        delivery = Delivery(logdir, uri, _print)
        if following:
            _follow(delivery, over)
            ending.join()
            if delivery.is_hopeless:
                return 1
        elif delivery.attempt(over=True):
            _draw(logdir)
        else:
            return 1
        delivery.upload(learning_curve.FILE)
        return REFUSED if delivery.refused else 0


def _say_state(logdir: str) -> int:
    """Prints how many records are delivered, and whether a process sends the rest.

    Returns 1 if records are left, else 0.
    """
    whole, pending = sum(1 for _ in spool.read(logdir)), spool.pending(logdir)
    print(f"{whole - pending:,} of {whole:,} records are delivered; {_who_sends(logdir)}")
    return 1 if pending else 0


def _who_sends(logdir: str) -> str:
    path = os.path.join(logdir, spool.SENDING)
    try:
        if os.path.exists(path):
            lock(path, "").close()
    except UserError:
        return f"a process sends the rest; {os.path.join(logdir, LOG)} shows what it waits for"
    return "no process sends now"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m compat.tracking.mlflow.sender")
    parser.add_argument("logdir", help="the log folder of the training")
    parser.add_argument(
        "--tracking_uri",
        help="the store; MLFLOW_TRACKING_URI or the store in which the run began by default",
    )
    parser.add_argument(
        "--state", action="store_true", help="print how many records are left, and send nothing"
    )
    parser.add_argument(
        "--follow",
        type=float,
        metavar="SECONDS",
        help="continue until standard input ends, and SECONDS for the rest",
    )
    return parser.parse_args()


def _prepare_mlflow(uri: str, timeout_secs: int) -> None:
    """Makes MLflow fail fast, since this process retries itself, and disables its telemetry."""
    os.environ.update(
        MLFLOW_HTTP_REQUEST_TIMEOUT=str(timeout_secs),
        MLFLOW_HTTP_REQUEST_MAX_RETRIES="0",
        MLFLOW_DISABLE_TELEMETRY="true",
        # MLflow 1 sends artifacts to this server, and ignores the URI of its client.
        MLFLOW_TRACKING_URI=uri,
    )
    root = artifact_root(uri)
    if root:
        # MLflow 1 creates an empty folder `mlruns` in the working directory for a SQLite store.
        os.makedirs(root, exist_ok=True)
        os.chdir(root)


def _set_priority(nice: int) -> None:
    """Gives training ten times the CPU share of this process; after training, an equal share.

    Loading MLflow alone takes seconds of a core. At the lowest priority, a busy machine did not
    load it in three minutes.
    """
    for thread in os.listdir("/proc/self/task") if os.path.isdir("/proc/self/task") else ["0"]:
        # Without root, a process can only lower its priority; see below.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, int(thread), nice)
    # Linux weighs the processes of a session against each other, and, if the kernel groups by
    # session, sessions by their own number. This process is its own session.
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as group:
        group.write(str(nice))


def _print(line: str) -> None:
    print(time.strftime("%Y-%m-%d %H:%M:%S ") + line, flush=True)


if __name__ == "__main__":
    # Messages of MLflow and of its libraries may contain the URI with its password.
    sys.stdout, sys.stderr = RedactedStream(sys.stdout), RedactedStream(sys.stderr)
    try:
        sys.exit(main())
    except UserError as error:
        sys.exit(f"error: {error}")
