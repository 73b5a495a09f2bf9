"""How a supervised training ends; the cases are run by `supervision.py`."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import compat
from compat import tf, tf1

if TYPE_CHECKING:
    from tests.compat.programs.cases import Program, case, checkpoints, refusal
else:
    from cases import Program, case, checkpoints, refusal


@case
def stopping(logdir: Path) -> Any:
    program = Program()
    supervisor = compat.Supervisor()
    calls = []
    with supervisor.managed_session() as session:
        before = supervisor.should_stop()
        looper = supervisor.loop(0.01, lambda *given, **named: calls.append((given, named)), (1,))
        waiter = threading.Thread(target=supervisor.wait_for_stop)
        waiter.start()
        while not supervisor.should_stop():
            values = session.run(program.train, np.float32(1))
            time.sleep(0.02)
            if len(calls) > 3:
                supervisor.request_stop()
        waiter.join(10)
    later = len(calls)
    time.sleep(0.1)
    return {
        "before": before,
        "after": supervisor.should_stop(),
        "updates": values["global_step"] >= 1,
        "call": calls[0],
        "stopped": [not looper.is_alive(), not waiter.is_alive(), len(calls) == later],
    }


@case
def stopped_by_an_error(logdir: Path) -> Any:
    """An error that a thread hands over is raised again where the session is left."""
    program = Program()
    supervisor = compat.Supervisor()

    def body() -> None:
        with supervisor.managed_session() as session:
            supervisor.request_stop(OSError("disk is full"))
            session.run(program.train, np.float32(1))

    return refusal(body, OSError)


@case
def stopped_by_a_loop(logdir: Path) -> Any:
    Program()
    supervisor = compat.Supervisor()

    def fail() -> None:
        raise OSError("disk is full")

    def body() -> None:
        with supervisor.managed_session():
            supervisor.loop(0, fail)
            supervisor.wait_for_stop()

    return refusal(body, OSError)


@case
def error_in_the_body(logdir: Path) -> Any:
    program = Program()
    supervisor = compat.Supervisor(logdir=str(logdir))

    def body() -> None:
        with supervisor.managed_session() as session:
            session.run(program.train, np.float32(1))
            raise KeyError("mine")

    return [refusal(body, KeyError), supervisor.should_stop(), checkpoints(logdir)]


@case
def not_finite_at_the_end(logdir: Path) -> Any:
    program = Program()
    supervisor = compat.Supervisor(logdir=str(logdir))

    def body() -> None:
        with supervisor.managed_session() as session:
            session.run(program.train, np.float32(np.nan))

    return [refusal(body, compat.NotFiniteError), supervisor.should_stop(), checkpoints(logdir)]


@case
def first_checkpoint_fails(logdir: Path) -> Any:
    """The session that was opened for it is closed."""
    opened: list[Any] = []
    with compat.device(None):
        tf.Variable(np.float32(np.nan), name="weight")
    compat.get_or_create_global_step()
    scaffold = compat.Scaffold(init_fn=lambda _, session: opened.append(session))

    def monitored() -> None:
        compat.MonitoredTrainingSession(checkpoint_dir=str(logdir), scaffold=scaffold)

    def supervised() -> None:
        supervisor = compat.Supervisor(logdir=str(logdir), init_fn=opened.append)
        supervisor.prepare_or_wait_for_session()

    seen = [refusal(function, compat.NotFiniteError) for function in (monitored, supervised)]
    return [*seen, [is_closed(session) for session in opened]]


def is_closed(session: Any) -> bool:
    """Whether a session of TensorFlow was closed; one of the modern runtime holds nothing else."""
    if not isinstance(session, tf1.Session):
        return True
    with session.graph.as_default():
        return "closed" in refusal(lambda: session.run(tf1.global_variables()), RuntimeError)


@case
def begins_infinite(logdir: Path) -> Any:
    """A variable that is trainable by default, and that no optimizer updates."""
    program = Program()
    with compat.device(None):
        best = tf.Variable(np.float32(np.inf), name="best_loss")
    supervisor = compat.Supervisor(logdir=str(logdir))
    with supervisor.managed_session() as session:
        session.run(program.train, np.float32(1))
        value = float(session.run(best))
    return [value == np.inf, checkpoints(logdir)]


class ServerStub:
    """Records what a supervisor tells the server of its task."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def diagnose(self, error: BaseException) -> None:
        self.told.append(type(error).__name__)


@case
def of_2016_with_a_lost_peer(logdir: Path) -> Any:
    """It is the thread of a loop that misses it."""
    Program()
    supervisor, server = compat.Supervisor(), ServerStub()

    def fail() -> None:
        raise compat.PeerError("lost")

    with supervisor.prepare_or_wait_for_session():
        supervisor.loop(0, fail)
        supervisor.wait_for_stop()
    supervisor.runtime.server = server  # type: ignore[assignment]
    said = refusal(supervisor.stop, compat.PeerError)
    supervisor.runtime.server = None
    return [said, server.told]


@case
def of_2016(logdir: Path) -> Any:
    program = Program()
    supervisor = compat.Supervisor(logdir=str(logdir))
    with supervisor.prepare_or_wait_for_session() as session:
        while not supervisor.should_stop():
            values = session.run(program.train, np.float32(1))
            if values["global_step"] >= 3:
                break
        weight = float(program.weight.eval())
    supervisor.stop()
    return [values["global_step"], supervisor.should_stop(), weight]
