"""What goes wrong by the caller's hand or a peer's, as one line that says how to mend it."""

from __future__ import annotations


class _LineError(Exception):
    """Has its message in one line, whatever values are in it: line ends and the like are escaped.

    Nor can a value that is somebody else's, such as a file's name, speak to the terminal.
    """

    def __str__(self) -> str:
        return "".join(c if c.isprintable() else repr(c)[1:-1] for c in super().__str__())


class UserError(_LineError):
    """A wrong input: the message names the value, what was expected and the remedy, in one line.

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
