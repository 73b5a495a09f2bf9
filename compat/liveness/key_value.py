"""Short texts that lie on the TensorFlow servers of a cluster, where other tasks can read them.

A server answers by itself: also for a task that is in the middle of something.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

from compat._tensorflow import tf1
from compat.cluster.spec import Task
from compat.errors import PeerError
from compat.liveness.watchdog import connected

ANSWER_SECS = 20.0  # For which a server is given time to answer.
# A filter that nobody passes: the session waits for no other task of the cluster, which may have
# gone, or be another cluster's and never come.
_NOBODY = "/job:nobody"


def read(target: str, task: Task, name: str) -> str | None:
    """Returns the text that lies on a task's server; None if there is none.

    Args:
      target: of the server, "grpc://host:port".
      task: whose server it is.
      name: of the text.

    Raises:
      PeerError: the task does not answer.
      tf.errors.InvalidArgumentError: the server is there, but is another task's.
      tf.errors.OpError: it fails otherwise.
    """
    try:
        with session(target, task) as opened:
            text: bytes = opened.run(_text(name).read_value())
    except (tf1.errors.FailedPreconditionError, tf1.errors.NotFoundError):
        return None
    except tf1.errors.DeadlineExceededError as error:
        address = target[len("grpc://") :]
        raise PeerError(f"{task.name} at {address} does not answer; start it again") from error
    return text.decode()


def write(target: str, task: Task, name: str, text: str) -> None:
    """Lays a text on a task's server, in the place of what lay there under that name.

    Args:
      target: as for `read`.
      task: as for `read`.
      name: as for `read`.
      text: what is to lie there.

    Raises:
      tf.errors.OpError: it is not there.
    """
    with session(target, task) as opened:
        opened.run(_text(name).assign(text))


def _text(name: str) -> Any:
    """Returns the variable of the server at hand that holds a text, in no collection."""
    return tf1.Variable("", name=name, trainable=False, collections=[], use_resource=True)


@contextlib.contextmanager
def session(target: str, task: Task) -> Iterator[tf1.Session]:
    """A session on the server of one task alone, and a graph for it, placed on that task."""
    options = tf1.ConfigProto(
        device_filters=[_NOBODY], operation_timeout_in_ms=int(1000 * ANSWER_SECS)
    )
    with tf1.Graph().as_default() as graph, tf1.device(f"{task.name}/cpu:0"), connected(
        target, graph, options
    ) as opened:
        yield opened
