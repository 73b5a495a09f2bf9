"""Runs the session of `hook_rows.py` by `compat`, alone or in a cluster; prints what was seen."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import compat
from compat import tf, tf1

if TYPE_CHECKING:
    from tests.conformance.hook_rows import build, observe
    from tests.conformance.tasks import place
else:
    from hook_rows import build, observe
    from tasks import place


def main(settings: dict[str, Any]) -> None:
    server, setter = place(settings)
    scalar = tf.TensorSpec([], tf.float32)
    found: list[Any] = []

    def step(x: Any, y: Any) -> Any:
        values = build(tf1, x, y)
        found.extend(tf1.trainable_variables())
        return values

    with compat.device(setter):
        compat.get_or_create_global_step()
        train = compat.step(step, [scalar, scalar])
    (w,) = found

    def run(session: Any, *arrays: Any) -> float:
        return float(session.run(train, *arrays)["loss"])

    def set_weight(session: Any, value: float) -> None:
        session.assign({"w": w}, {"w": value})

    target = server.target if server else ""
    logs = str(Path.cwd() / "logs")
    print(json.dumps(observe(compat, tf1, logs, train, run, set_weight, w, target)))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
