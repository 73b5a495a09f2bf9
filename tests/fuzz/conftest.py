"""Inputs that nobody would write: how they are made, what they may bring about, how many there are.

Whatever a target is given, it takes it or refuses it in one line, soon, and leaves nothing half
done. `--hypothesis-profile=long` tries a hundred times as many inputs, other ones at each call.
"""

from __future__ import annotations

import json
import signal
from typing import Any, Callable, Iterator, Sequence

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from compat.errors import PeerError, UserError

# Of the processor's time, so that a busy machine fails nothing.
DEADLINE_SECS = 5.0
_tried = 0

# Scripts and notebooks, and what may be put amid them.
PYTHON2 = b"""# -*- coding: utf-8 -*-
from __future__ import absolute_import
import cPickle, tensorflow as tf
from tensorflow.contrib import slim
class Reader:
\tdef read(self, (a, b)):
\t    print >>f, "step %d" % (a / b), u'\xc3\xa4', `a`, 0777, a <> b
\t    exec "x = 1" in d
hosts = ["pc-01:2222", "/tmp/mnist"].decode()
"""
PYTHON3 = b"""import sys
import tensorflow as tf
flags = tf.app.flags
flags.DEFINE_string("job_name", "", "Either 'ps' or 'worker'")
flags.DEFINE_integer("task_index", 0, "Index of task within the job")
cluster = tf.train.ClusterSpec({"ps": ["pc-01:2222"], "worker": ["pc-02:2222"]})
with tf.device(tf.train.replica_device_setter(cluster=cluster)):
  cost = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(y, tf.mul(x, 2)))
  parts = tf.split(0, 2, tf.concat(1, [a, b]))
if not sys.argv[1]: writer = tf.train.SummaryWriter("/tmp/logs")
"""
SCRIPT_TOKENS = [
    *(b"\0", b"\xff", b"\xef\xbb\xbf", b"\x0c", b"\r", b"\t", b"\\", b"\n\n", b'"""', b"'''"),
    *(b"(", b"[" * 99, b"{", b"f'{", b"lambda: ", b"not " * 99, b"-" * 999, b"print 'x'\n"),
    *(b"# coding: rot13\n", b"# coding: utf-16\n", b"# coding: idna\n", b"async ", b"0777"),
    *(b"tf.contrib.", b"from __future__ import division\n", b"exec x in y\n", b"* ", b":=", b"@"),
]
CELLS = json.dumps(
    {
        "cells": [
            {"cell_type": "markdown", "source": ["# text"]},
            {"cell_type": "code", "source": ["%matplotlib inline\n", "import tensorflow as tf\n"]},
            {"cell_type": "code", "source": "!ls\nprint 'x', tf.mul(1, 2)"},
        ],
        "nbformat": 4,
    }
).encode()
WORKSHEETS = b'{"worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1"]}]}]}'

settings.register_profile(
    "quick",
    max_examples=100,
    derandomize=True,  # The same inputs each time: what fails, fails for everybody.
    database=None,
    deadline=None,  # The one of `attempt` also ends what has no end.
    suppress_health_check=list(HealthCheck),
)
settings.register_profile(
    "long",
    max_examples=100 * 100,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("quick")  # pytest loads another afterwards, if it is told so.


class _NoEndError(BaseException):
    """A target has used up its time; no `except Exception` of its own keeps it."""


def times(factor: float) -> Callable[[Any], Any]:
    """Returns a decorator: the test tries so many times what the profile says."""
    count: int = settings.default.max_examples  # type: ignore[attr-defined]
    return settings(max_examples=max(1, int(factor * count)))


def attempt(
    function: Callable[..., Any], *args: Any, also: tuple[type[Exception], ...] = ()
) -> Any:
    """Returns what a function returns, or the error by which it refuses its input.

    Args:
      function: the target.
      args: its input.
      also: errors that its docstring has besides those for the user.

    Raises:
      AssertionError: it has not ended in time, or what it says takes more than one line.
      Exception: any other error that is raised, to which there is no right.
    """
    global _tried
    _tried += 1
    earlier = signal.signal(signal.SIGVTALRM, _interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, DEADLINE_SECS)
    try:
        return function(*args)
    except (UserError, PeerError) as error:
        assert_is_a_line(str(error))
        return error
    except also as error:
        return error
    except _NoEndError:
        raise AssertionError(f"no end after {DEADLINE_SECS:g} s of the processor") from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, earlier)


def _interrupt(signum: int, frame: Any) -> None:
    raise _NoEndError


def count_input() -> None:
    """Counts an input that is tried in another process."""
    global _tried
    _tried += 1


def forget(values: Any) -> None:
    """Makes absl's flags as they were before a command line was parsed."""
    values.unparse_flags()
    for name in values:
        values[name].unparse()


def assert_is_a_line(text: str) -> None:
    """Checks a message: one line that a terminal shows, with a remedy behind a semicolon."""
    assert [text] == text.splitlines(), repr(text)
    assert text.isprintable(), repr(text)
    assert "; " in text, text


def mutated(*seeds: bytes, tokens: Sequence[bytes] = ()) -> st.SearchStrategy[bytes]:
    """Valid inputs, changed in up to four places.

    Args:
      seeds: the valid inputs.
      tokens: what is put in besides any byte.
    """
    # The changes are themselves written in bytes: so one is drawn soon, and shrinks.
    return st.binary(min_size=6, max_size=24).map(lambda code: changed(seeds, tokens, code))


def changed(seeds: Sequence[bytes], tokens: Sequence[bytes], code: bytes) -> bytes:
    raw = seeds[sum(code) % len(seeds)]
    for i in range(0, len(code) - 5, 6):
        kind, what, *places = code[i : i + 6]
        first, second = (places[j] * 256 + places[j + 1] for j in (0, 2))
        start, end = sorted((first * (len(raw) + 1) >> 16, second * (len(raw) + 1) >> 16))
        before, part, after = raw[:start], raw[start:end], raw[end:]
        if kind % 6 == 0 and part:
            raw = before + bytes([part[0] ^ (1 << what % 8)]) + part[1:] + after
        elif kind % 6 == 1:
            raw = before  # Cut off.
        elif kind % 6 == 2:
            raw = before + after
        elif kind % 6 == 3:
            raw = before + part + part + after
        else:
            put_in = (bytes([what]), *tokens)[what % (len(tokens) + 1)]
            raw = before + put_in + part + after
    return raw


def words(*seeds: str, tokens: Sequence[str] = ()) -> st.SearchStrategy[str]:
    """Texts as they come from a command line: any, and valid ones that were changed."""
    raw = mutated(
        *(seed.encode() for seed in seeds),
        tokens=[token.encode() for token in (*tokens, "²", "\n", "\x1b[2J", ",", "=", ":", "٣")],
    )
    # As Python gives arguments that are no UTF-8; none can hold a NUL.
    argument = raw.map(lambda word: word.replace(b"\0", b"").decode("utf-8", "surrogateescape"))
    anything = st.text(max_size=30).map(lambda word: word.replace("\0", ""))
    return st.one_of(argument, anything, st.sampled_from(seeds))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Notes how many inputs a test has tried; `tests/conftest.py` prints it."""
    before = _tried
    yield
    item.user_properties.append(("tried", _tried - before))
