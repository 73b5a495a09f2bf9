"""Gathers calls of a session that are of one kind, and makes them as one call.

A gathered call returns at once, with proxies that wait for the values when the program uses them.
Calls are of one kind if they have the same fetches and feeds. A group of calls is made when it is
full, on another thread, while the program prepares the calls of the next group. It is made earlier
if the program could otherwise notice that the calls are pending.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import functools
import json
import os
import sys
import sysconfig
import threading
from typing import Any, Callable, Iterator, Sequence

import lazy_object_proxy
import numpy as np

from compat._tensorflow import private, tf, tf1
from compat.errors import UserError
from compat.runtime.graphs import memory
from compat.runtime.graphs.chain import CALLS_BEFORE, SIZES, Chain, failed_copy
from compat.runtime.graphs.dependence import VARIABLES, holds_state, is_handle, shared_name
from compat.runtime.graphs.draws import draws
from compat.runtime.graphs.nodes import dependencies
from compat.runtime.graphs.part import lasts
from compat.runtime.graphs.walk import Needed

_WAIT_SECS = 1.0
_GROUPS, _ENOUGH = 10, 5  # After ten groups of fewer than five calls, a kind is not gathered.
_PYTHON = ("PyFunc", "EagerPyFunc", "PyFuncStateless")
_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))
_NOT_OF_PROGRAM = (*_LIBRARIES, __file__.partition("runtime")[0], "<")


class Value(lazy_object_proxy.Proxy):
    """A proxy for a value of a gathered call, which makes the call when the program uses it."""

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __format__(self, spec: str) -> str:
        return format(self.__wrapped__, spec)

    def __round__(self, *digits: Any) -> Any:
        return round(self.__wrapped__, *digits)


class _Kind:
    """Calls of a graph's sessions that have the same fetches, operations and feeds.

    Attributes:
      shows: whether earlier calls have to be made before such a call, since it uses variables, or a
        queue that other programs use, for example to end a server.
      first: operations that run in each call at once, such as those that read from a queue.
      edges: tensors that the gathered operations take from `first`.
      handlers: by the number of calls in a group, TensorFlow's handler of the group's fetches.
      obstacle: the reason, as text, why calls are made alone; "" while they are gathered.
    """

    def __init__(self, graph: Any, fetches: Any, operations: Any, fed: Sequence[Any]) -> None:
        self.fetches, self.operations, self.fed = fetches, operations, fed
        self.calls = self.gathered = self.groups = 0
        self._sizes: collections.deque[int] = collections.deque(maxlen=_GROUPS)
        self._causes: collections.Counter[str] = collections.Counter()
        names = {tensor.name for tensor in fed}
        needed = Needed(fetches, operations, names).operations
        has_variables = any(op.type in VARIABLES for op in needed)
        self.shows = has_variables or any(map(_is_shared_queue, needed))
        alone = {op for op in needed if _runs_alone(op)}
        rest = Needed(fetches, operations, names, alone)
        waited = [*operations, *(c for op in rest.operations for c in op.control_inputs)]
        self.edges = [rest.edges[name] for name in sorted(rest.edges)]
        self.first = [op for op in dict.fromkeys(waited) if op in alone]
        self.run = [op for op in operations if op not in alone]
        self.obstacle = "" if has_variables else "they use no variable"
        for op in needed if has_variables else ():
            if _is_of_machine(op):
                self.obstacle = f"{op.name} reads or writes files"
        for op in alone if has_variables else ():
            if private.is_in_branch_or_loop(op):
                self.obstacle = f"{op.name} is in a branch or a loop"
            elif any(before.type in VARIABLES for before in dependencies([op], names)):
                self.obstacle = f"{op.name} depends on a variable"
        self._chain: Chain | None = None
        self.handlers: dict[int, Any] = {}
        self._make = functools.partial(
            Chain, graph, [*fed, *self.edges], fetches, self.run, self.first, fails_in_order=True
        )

    @property
    def chain(self) -> Chain:
        """Copies of the operations, so that one call of the session does the work of several.

        They are made on first use. If they cannot run as one call, this sets `obstacle`.
        """
        if self._chain is None:
            self._chain = self._make()
            self.obstacle = self.obstacle or self._chain.obstacle
        return self._chain

    def ended(self, size: int, cause: str) -> None:
        """Counts a group that was made, and the `cause` that cut it short, "" if it was full."""
        self.groups += 1
        self.gathered += size
        self._sizes.append(size)
        self._causes[cause] += 1
        if len(self._sizes) == _GROUPS and sum(self._sizes) < _GROUPS * _ENOUGH:
            self.obstacle = self._causes.most_common(1)[0][0] or "they are too far apart"


def _runs_alone(op: Any) -> bool:
    """Whether each call runs an operation at once: it uses a queue, calls Python, or has a seed."""
    if draws(op):
        return bool(op.get_attr("seed") or op.get_attr("seed2"))
    handles = [tensor for tensor in op.inputs if is_handle(tensor) and lasts(tensor)]
    return op.type in _PYTHON or not all(map(_is_of_variable, handles))


def _is_shared_queue(op: Any) -> bool:
    """Whether an operation is a queue that other programs find by its name."""
    return "Queue" in op.type and holds_state(op) and shared_name(op) != ""


def _is_of_machine(op: Any) -> bool:
    """Whether an operation uses state outside of TensorFlow, such as a file."""
    arguments = [*op.op_def.input_arg, *op.op_def.output_arg]  # Those of savers are values.
    is_state = any(tensor.dtype == tf.resource for tensor in [*op.inputs, *op.outputs])
    is_state |= any(argument.is_ref for argument in arguments)
    is_known = draws(op) or op.type.startswith(("Print", "Assert", *_PYTHON))
    return bool(op.op_def.is_stateful and not is_state and not is_known)


def _is_of_variable(handle: Any) -> bool:
    """Whether a tensor refers to a variable, directly or as the result of an assignment to it."""
    while handle.op.type not in VARIABLES and any(map(is_handle, handle.op.inputs)):
        handle = next(filter(is_handle, handle.op.inputs))
    return handle.op.type in VARIABLES


class _Group:
    """Calls of one session and kind that are made together.

    Attributes:
      size: the number of calls.
      afterwards: functions to call when the calls are made, such as to write a summary.
      raised: the exception that making the calls has raised, or None.
      error: the error that the program receives for it, or None.
    """

    def __init__(self, ahead: Ahead, session: Any, kind: _Kind) -> None:
        self._ahead, self.session, self.kind = ahead, session, kind
        self.size = 0
        self.afterwards: list[Callable[[], Any]] = []
        self.raised: Exception | None = None
        self.error: BaseException | None = None
        self._rows: list[np.ndarray] = []  # The values of each fed tensor, a row for each call.
        self._made: list[Any] = []  # The values of each call that is made.

    @property
    def is_over(self) -> bool:
        """Whether the calls are made, or have failed."""
        return len(self._made) == self.size or self.error is not None

    def takes(self, session: Any, kind: _Kind, arrays: Sequence[np.ndarray]) -> bool:
        """Whether a call can join the group."""
        is_alike = session is self.session and kind is self.kind
        return is_alike and all(r.shape[1:] == a.shape for r, a in zip(self._rows, arrays))

    def add(self, arrays: Sequence[np.ndarray]) -> list[Value]:
        """Adds a call; returns its values."""
        if not self.size:
            self._rows = [memory.rows(self._ahead.most, array) for array in arrays]
        for row, array in zip(self._rows, arrays):
            row[self.size, ...] = array  # Copied: the program may change it.
        self.size += 1
        places = range(len(self.kind.fetches))
        return [Value(functools.partial(self._value, self.size - 1, i)) for i in places]

    def make(self) -> None:
        """Makes the calls, on any thread, or sets the exception that they raise."""
        try:
            self._make()
        except Exception as error:
            self.raised = error
        except BaseException as error:
            self.error = error
            raise

    def _make(self) -> None:
        chain = self.kind.chain
        # A session of `compat` checks that its peers are alive.
        watched = getattr(self.session, "watched", lambda call: call())
        for row in self._rows:  # TensorFlow need not copy read-only arrays.
            for array in (row, row.base):
                if array is not None:
                    array.setflags(write=False)
        while not self.is_over:
            begin = len(self._made)
            copies = chain.copies(chain.size(self.size - begin, self._ahead.sizes))
            rows = [row[begin : begin + len(copies)] for row in self._rows]
            results = watched(functools.partial(self._run, copies, chain.feed(rows)))
            self._made += [values for values, _ in results]
        self._rows = []

    def _run(self, copies: Sequence[Any], feed: dict[Any, Any]) -> Any:
        handlers, graph = self.kind.handlers, self.session.graph
        if len(copies) not in handlers:
            handlers[len(copies)] = private.fetch_handler(graph, copies)
        with self._ahead.making():
            return private.run_handled(self.session, handlers[len(copies)], feed)

    def fail(self, behind: int) -> BaseException:
        """Sets and returns the group's error, which reports how many calls are not made.

        These are the calls after the failed one, and the `behind` calls of the next group.
        """
        self.error, self._rows = self.raised, []
        if isinstance(self.raised, tf1.errors.OpError):
            number = len(self._made) + max(1, failed_copy(self.raised.message))
            message = f"call {number} of {self.size} that were gathered has failed, "
            message += f"{self.size - number + behind} behind it are not made: "
            message += self.raised.message
            self.error = type(self.raised)(self.raised.node_def, self.raised.op, message)
        assert self.error is not None
        return self.error

    def _value(self, call: int, place: int) -> Any:
        if not self.is_over:
            self._ahead.look(self, f"{_line()} looks at {self.kind.fetches[place].name}")
        if self.error is not None:
            raise self.error
        return self._made[call][place]


class Ahead:
    """Gathers the calls of all sessions of this process.

    Args:
      most: calls in a group.
      after: calls of a kind that are made before any is gathered.
    """

    def __init__(self, most: int, after: int) -> None:
        self.most, self._after = most, after
        self.sizes = [most, *(size for size in SIZES if size < most)]
        self._this_thread = threading.local()
        self.group: _Group | None = None
        self._full: _Group | None = None  # The group that `_maker` makes.
        self._kinds: dict[Any, _Kind] = {}
        self._lock = threading.RLock()  # A program may run calls on several threads.
        self._maker: threading.Thread  # Makes the full group.
        self._failure: BaseException | None = None
        self._is_at_end = threading.Event()
        threading.Thread(target=self._make_old_groups, daemon=True).start()

    def called(
        self,
        session: Any,
        at_once: Callable[[Sequence[Any], Sequence[Any]], list[Any]],
        fetches: Sequence[Any],
        operations: Sequence[Any],
        fed: dict[Any, Any],
        has_options: bool,
    ) -> list[Any] | None:
        """Gathers a call; returns its values, or None if the call has to be made now.

        Args:
          session: a session of TensorFlow.
          at_once: runs tensors and operations in the session, with the feed of the call.
          fetches: the tensors whose values the call returns.
          operations: further operations that the call runs.
          fed: arrays by tensors.
          has_options: whether the call is traced, or has a time limit.
        """
        if self.makes_group:
            return None
        # The graph keeps these objects as long as it lives, and names take longer.
        key = session.graph, len(fetches), *map(id, fetches), *map(id, operations), *map(id, fed)
        if key not in self._kinds:
            self._kinds[key] = _Kind(session.graph, list(fetches), list(operations), [*fed])
        kind, arrays = self._kinds[key], list(fed.values())
        if not kind.shows or hasattr(session.graph, "compat_is_run_by_server"):
            return None
        kind.calls += 1
        is_early = kind.calls <= self._after or not all(isinstance(a, np.ndarray) for a in arrays)
        if has_options or is_early or kind.obstacle or kind.chain.obstacle:
            self._finish_before(kind)
            return None
        if kind.edges or kind.first:
            # Without the lock, since another thread may have to fill a queue.
            arrays += map(np.asarray, at_once(kind.edges, kind.first))
        with self._lock:
            if self._full is not None and not self._maker.is_alive():
                self._finish_full()  # So an error is raised as early as can be.
            group = self.group
            if self._failure or (group is not None and not group.takes(session, kind, arrays)):
                self._finish_before(kind)
                group = None
            if group is None:
                group = _Group(self, session, kind)
            values = group.add(arrays)
            self.group = group
            if group.size == self.most:
                self._begin()
            return values

    def is_of(self, session: Any) -> bool:
        """Whether calls of a session are gathered, or being made."""
        return any(group and group.session is session for group in (self.group, self._full))

    @property
    def makes_group(self) -> bool:
        """Whether this thread is making a group, so that its calls are not the program's own."""
        return getattr(self._this_thread, "makes_group", False)

    @contextlib.contextmanager
    def making(self) -> Iterator[None]:
        """Marks the calls of this thread as calls that make a group."""
        self._this_thread.makes_group = True
        try:
            yield
        finally:
            self._this_thread.makes_group = False

    def look(self, group: _Group, cause: str) -> None:
        """Makes a group because the program uses one of its values.

        If the group fails, that value raises the error, so `finish` does not raise it again.
        """
        with self._lock:
            if self.group is group:
                self._finish(cause)
            elif self._full is group:
                self._finish_full()
            if self._failure is group.error:
                self._failure = None

    def later(self, values: Sequence[Any], then: Callable[..., Any]) -> None:
        """Calls `then` with values when they are available; at once if no group is pending."""
        with self._lock:
            for group in (self.group, self._full):
                if group and (group.afterwards or any(_group_of(v) is group for v in values)):
                    group.afterwards.append(lambda: then(*map(_seen, values)))
                    return
        then(*map(_seen, values))

    def finish(self) -> None:
        """Makes the gathered calls; raises the error of a group once."""
        with self._lock:
            self._finish("")
            failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def drop(self) -> None:
        """Drops the gathered calls, and logs their number."""
        with self._lock:
            self._finish_full()  # Its calls have begun.
            group, self.group = self.group, None
        if group is not None:
            group.error = UserError(f"{group.size} calls that were gathered are not made")
            print(f"compat: {group.error}", flush=True)

    def _finish_before(self, kind: _Kind) -> None:
        if self.group is None and self._full is None and self._failure is None:
            return  # The common case of a program that uses each value at once.
        with self._lock:
            if self.group is not None:
                names = [each.name for each in (*kind.fetches, *kind.operations)]
                self._finish(f"{_line()} runs {', '.join(names[:2])}")
            self.finish()

    def _begin(self) -> None:
        """Begins to make the group that is full, on another thread."""
        afterwards = self._end_full()
        group, self.group = self.group, None
        if group is not None:
            group.kind.chain.copies(group.size)  # On this thread, while the program adds nothing.
            self._full = group
            self._maker = threading.Thread(target=group.make, daemon=True)
            self._maker.start()
        for then in afterwards:
            then()

    def _finish_full(self) -> None:
        for then in self._end_full():
            then()

    def _end_full(self) -> list[Callable[[], Any]]:
        """Waits until the full group is made; returns the functions to call afterwards.

        If the full group fails, the calls that were gathered after it fail with the same error.
        """
        group, behind = self._full, self.group
        if group is None:
            return []
        self._maker.join()
        self._full = None
        afterwards = self._ended(group, "")
        if group.error is not None and behind is not None:
            self.group, behind.error = None, group.error
        return afterwards

    def _ended(self, group: _Group, cause: str) -> list[Callable[[], Any]]:
        """Records the end of a group, and its error; returns the functions to call afterwards."""
        if group.raised is not None:
            self._failure = group.fail(self.group.size if self.group is not None else 0)
        group.kind.ended(group.size, cause)
        return group.afterwards if group.error is None else []

    def _finish(self, cause: str) -> None:
        """Makes the calls gathered so far, on this thread, after those of the full group."""
        self._finish_full()
        group, self.group = self.group, None
        if group is None:
            return
        group.make()
        for then in self._ended(group, cause):
            then()

    def _make_old_groups(self) -> None:
        """Polls for groups that have waited for a second, and makes them; timers cost more."""
        before = None
        while not self._is_at_end.wait(_WAIT_SECS / 2):
            group = self.group
            if group is not None and group is before:
                with self._lock:
                    try:
                        if self.group is group:
                            self._finish("")
                    except Exception as error:  # The next call of the program raises it.
                        self._failure = error
            before = group

    def end(self) -> None:
        """Ends the thread that makes old groups."""
        self._is_at_end.set()

    def report(self) -> None:
        """Logs how many calls were gathered, and why most of the others were not."""
        kinds = [kind for kind in self._kinds.values() if kind.calls > self._after]
        gathered, calls = sum(k.gathered for k in kinds), sum(k.calls for k in kinds)
        groups, head = sum(kind.groups for kind in kinds), f"compat: --ahead={self.most}"
        if gathered:
            print(f"{head}: {gathered} of {calls} calls were made in {groups} groups", flush=True)
        alone = [(kind.calls - kind.gathered, kind.obstacle) for kind in kinds if kind.obstacle]
        for count, obstacle in sorted(alone)[-1:]:
            print(f"{head}: {count} calls were made alone, since {obstacle}", flush=True)


def _group_of(value: Any) -> Any:
    return value.__factory__.func.__self__ if type(value) is Value else None


def _seen(value: Any) -> Any:
    return value.__wrapped__ if type(value) is Value else value


def _line() -> str:
    """Returns the file and line of the program that are being run, such as "train.py:12"."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_OF_PROGRAM):
        frame = frame.f_back
    place = frame and f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
    return place or "a thread"


_active: Ahead | None = None
chosen = 0  # Calls in a group, of a script that `compat run` runs.
calls_before = CALLS_BEFORE  # Calls of a kind that are made one by one before any is gathered.


def install() -> None:
    """Gathers calls once TensorFlow is loaded, if the command line has `--ahead`."""
    begin(chosen)


def begin(most: int, after: int | None = None) -> None:
    """Gathers calls from here on, until `end` or the end of the process; see `ahead`."""
    global _active
    if most < 2:
        raise UserError(f"--ahead={most} gathers no calls; give the calls of a group, such as 20")
    if _active is not None:
        raise UserError(f"--ahead={most} was given where --ahead={_active.most} is in effect")
    _active = Ahead(most, calls_before if after is None else after)
    _install()


def end(is_interrupted: bool = False) -> None:
    """Makes the gathered calls and logs their number, or drops them if `is_interrupted`."""
    global _active
    if _active is None:
        return
    last, _active = _active, None
    try:
        if is_interrupted:
            last.drop()
        else:
            last.finish()
    finally:
        last.end()
        if not is_interrupted:
            last.report()


@contextlib.contextmanager
def ahead(calls: int, after: int | None = None) -> Iterator[None]:
    """Gathers session calls that have the same fetches and feeds, and makes them as one call.

    So the program waits less often for servers. A gathered call returns at once, with proxies that
    wait for the values when the program uses them. The values are the same as without gathering;
    see docs/scripts.md.

    Args:
      calls: maximum number of calls in a group.
      after: number of calls with the same fetches and feeds that are made one by one first; by
        default a hundred.

    Raises:
      UserError: `calls` is less than two, or calls are already being gathered.
    """
    begin(calls, after)
    try:
        yield
    except BaseException as error:
        end(isinstance(error, KeyboardInterrupt))
        raise
    end()


def _called(*call: Any) -> list[Any] | None:
    return None if _active is None else _active.called(*call)


def _finish(*_: Any) -> None:
    if _active is not None:
        _active.finish()


def makes_group() -> bool:
    """Whether this thread is making a group, so that its calls are not the program's own."""
    return _active is not None and _active.makes_group


def _closed(session: Any) -> None:
    # Python closes an unreferenced session at any time, even during a call of another one.
    if _active is not None and _active.is_of(session):
        _active.finish()


def _left(_: Any, kind: Any, *__: Any) -> None:
    if _active is not None and kind is KeyboardInterrupt:
        _active.drop()


def _written(values: Sequence[Any], then: Callable[..., Any]) -> None:
    if _active is None:
        then(*map(_seen, values))
    else:
        _active.later(values, then)


@functools.lru_cache(maxsize=None)
def _install() -> None:
    private.before_calls(_called, _finish, _closed, _left)
    private.before_summaries(_written, _finish)
    atexit.register(end)
    encode = json.JSONEncoder.default
    # The encoder accepts NumPy's float64, a subclass of `float`, but not its proxy.
    json.JSONEncoder.default = (  # type: ignore[method-assign]
        lambda self, o: _seen(o) if type(o) is Value else encode(self, o)
    )
