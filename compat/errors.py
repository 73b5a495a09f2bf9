"""Errors of the user or of a peer, each with a one-line message and a remedy."""

from __future__ import annotations

import argparse
import signal
from typing import NoReturn

_CTRL_C = 128 + signal.SIGINT


def one_line(text: str) -> str:
    """Returns a text in which line ends, and whatever else a terminal obeys, are escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def may_pass(exit_code: int) -> bool:
    """Whether the same command may succeed when it is run again.

    As Kubernetes' training operators read exit codes: 128 and above, a signal or a lost peer, may
    pass; 1 to 127, a wrong input or a failure of the program, will not. Ctrl-C is the user's will.
    """
    return exit_code >= 128 and exit_code != _CTRL_C


class _LineError(Exception):
    """Has its message in one line, whatever values are in it."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class UserError(_LineError, ValueError, RuntimeError):
    """A wrong input: the message names the value, what was expected and the remedy, in one line.

    A `ValueError` and a `RuntimeError` too, which TensorFlow raises where `compat` raises this.
    Programs print it as it is, without a traceback, and exit with code 2, which cluster managers
    read as permanent: the same command would fail again.
    """

    exit_code = 2


class PeerError(_LineError):
    """A peer that is missing or lost: the message names the task, its address and the remedy.

    Programs print it as it is, without a traceback, and exit with code 138, which Kubernetes'
    training operators read as retryable: the same command may well succeed once the peer is there.
    """

    exit_code = 138


class Parser(argparse.ArgumentParser):
    """Differs from its base in that it raises what is wrong with a command line."""

    def error(self, message: str) -> NoReturn:
        """Raises a `UserError`, where argparse prints the usage and exits."""
        raise UserError(f"{message}; {self.prog} --help says more")
