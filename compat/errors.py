"""Errors of the user, of a peer and of a stop request, each as one line with the remedy."""

from __future__ import annotations

import argparse
import contextlib
import signal
import types
from typing import Any, Iterator, NoReturn

_CTRL_C = 128 + signal.SIGINT


def one_line(text: str) -> str:
    """Returns a text with line ends and other control characters escaped, so it is one line."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def is_retryable(exit_code: int) -> bool:
    """Whether the same command may succeed when it is run again.

    Follows Kubernetes' training operators: exit codes from 128 on, which stand for a signal or a
    lost peer, are retryable, except for Ctrl-C (130). Lower codes, which stand for invalid input or
    a failure of the program, are permanent.
    """
    return exit_code >= 128 and exit_code != _CTRL_C


def exit_code_of(error: BaseException | None) -> int:
    """Returns the exit code of a process that an error ends; 0 for None and for `sys.exit(0)`."""
    if error is None:
        return 0
    code = error.code if isinstance(error, SystemExit) else getattr(error, "exit_code", 1)
    if code is None:
        return 0
    return code & 0xFF if isinstance(code, int) else 1


def is_success(error: BaseException | None) -> bool:
    """Whether an exception ends the process with exit code 0, as `sys.exit(0)` does."""
    return isinstance(error, SystemExit) and exit_code_of(error) == 0


class _LineError(Exception):
    """Formats its message as one line, even if a value in the message has line ends."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class UserError(_LineError, ValueError, RuntimeError):
    """A wrong input: the message names the value, what was expected and the remedy, in one line.

    `compat.run_main` prints it as it is, without a traceback, and exits with code 2, which cluster
    managers read as permanent: the same command would fail again. It is also a `ValueError` and a
    `RuntimeError`, which TensorFlow raises in these cases, so that existing handlers catch it.
    """

    exit_code = 2


class UserTypeError(UserError, TypeError):
    """A wrong input of a wrong type, for which TensorFlow raises a `TypeError`."""


@contextlib.contextmanager
def raised_as(kind: type[Exception]) -> Iterator[None]:
    """Converts a `UserError` that the body raises into one that is also a `kind`.

    A program that catches the error class of TensorFlow, such as `tf.errors.InvalidArgumentError`,
    then catches this error too.
    """
    try:
        yield
    except UserError as error:
        both: Any = types.new_class(type(error).__name__, (kind, type(error)))
        raise both(None, None, str(error)) from None


def reason_of(error: BaseException) -> str:
    """Returns the reason of an `OSError`; its message, or its type, if it has no `strerror`."""
    return str(getattr(error, "strerror", None) or str(error) or type(error).__name__)


@contextlib.contextmanager
def unless_usable(what: str, remedy: str) -> Iterator[None]:
    """Converts an `OSError` of the body into a `UserError`: "`what` (reason); `remedy`"."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{what} ({reason_of(error)}); {remedy}") from error


class PeerError(_LineError):
    """A peer that is missing or lost: the message names the task, its address and the remedy.

    `compat.run_main` prints it as it is, without a traceback, and exits with code 138, which
    Kubernetes' training operators read as retryable: the same command may well succeed once the
    peer is there.
    """

    exit_code = 138


class ReplicaError(PeerError):
    """A lost synchronous replica: a call waits for its gradients, and so would a new session."""


class Stopped(BaseException):
    """The user or the cluster manager asked this process to stop.

    Like `KeyboardInterrupt` it is not an `Exception`, so that `except Exception` does not catch
    it.

    Args:
      signum: the signal that asked for the stop.
      loss: text about work that is lost, such as "the last checkpoint could not be written"; "" if
        none is. The text becomes the message, which is otherwise the name of the signal.
    """

    def __init__(self, signum: int, loss: str = "") -> None:
        super().__init__(loss or signal.Signals(signum).name)
        self.exit_code = 128 + signum  # As shells report it.
        self.loses = bool(loss)


class Parser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` that raises a `UserError` where argparse would exit."""

    def error(self, message: str) -> NoReturn:
        """Raises a `UserError`; argparse would print the usage and exit."""
        raise UserError(f"{message}; {self.prog} --help says more")
