"""A request that gRPC has sent twice; the errors are TensorFlow's own, made here."""

from __future__ import annotations

from typing import Any

import pytest

from compat import tf1
from compat.calls import delivered, delivering


def failing(*errors: Any) -> Any:
    """Returns a function that raises one error a call, and then returns 42."""
    left = list(errors)

    def function() -> int:
        if left:
            raise left.pop(0)
        return 42

    return function


def aborted(message: str) -> Any:
    return tf1.errors.AbortedError(None, None, message)


def test_a_request_that_came_twice_is_made_again() -> None:
    twice = aborted("The same RunGraph (Worker) request was received twice.")
    assert delivered(failing()) == 42
    assert delivered(failing(twice)) == 42
    with pytest.raises(tf1.errors.AbortedError):
        delivered(failing(twice, twice))


def test_what_queue_runners_call_is_made_again() -> None:
    twice = aborted("The same RunGraph (Worker) request was received twice.")
    assert delivering(lambda operation: failing(twice))("enqueue")() == 42


def test_other_errors_are_raised() -> None:
    with pytest.raises(tf1.errors.AbortedError, match="restarted"):
        delivered(failing(aborted("the worker was restarted")))
    with pytest.raises(tf1.errors.UnavailableError):
        delivered(failing(tf1.errors.UnavailableError(None, None, "lost")))
