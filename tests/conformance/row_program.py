"""Runs all rows in one session of `compat`, alone or in a cluster.

Prints the first value of each call, or the error, by name as one line of JSON.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import compat
from compat import tf, tf1

if TYPE_CHECKING:
    from tests.conformance import layer_rows
    from tests.conformance.rows import ROWS, arguments
    from tests.conformance.tasks import place
else:
    import layer_rows
    from rows import ROWS, arguments
    from tasks import place

ALL = {**ROWS, **layer_rows.ROWS}


def build(name: str) -> Any:
    """Returns the row's step and the arrays of its calls."""
    function, calls = ALL[name](tf1)
    specs = [
        tf.TensorSpec(shape, dtype, name)
        for dtype, shape, name in arguments(tf1, function, calls[0])
    ]
    return compat.step(function, specs), calls


def run(session: Any, step: Any, calls: Any) -> list[float]:
    """Returns the first value of each call; the next call waits for it."""
    found = []
    for arrays in calls:
        fed = isinstance(arrays, dict)
        values = session.run(step, feed_dict=arrays) if fed else session.run(step, *arrays)
        for last in session.drain():
            values = last
        found.append(float(next(v for k, v in values.items() if k != "global_step")))
    return found


def attempt(function: Any, *args: Any) -> Any:
    """Returns the function's result, or its error as one line."""
    try:
        return function(*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main(settings: dict[str, Any]) -> None:
    server, setter = place(settings)
    found = {}
    with compat.device(setter):
        compat.get_or_create_global_step()
        for index, name in enumerate(ALL):
            with tf1.variable_scope(f"row{index}"):
                found[name] = attempt(build, name)
    supervisor = compat.Supervisor(saver=None)
    with supervisor.managed_session(server.target if server else "") as session:
        for name, made in found.items():
            if not isinstance(made, str):
                found[name] = attempt(run, session, *made)
    print(json.dumps(found))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
