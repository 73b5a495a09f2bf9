"""Runs the program of `supervisor_rows.py` by `compat`, alone or in a cluster."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import compat
from compat import tf1

if TYPE_CHECKING:
    from tests.conformance.supervisor_rows import build, observe
    from tests.conformance.tasks import place
else:
    from supervisor_rows import build, observe
    from tasks import place


def main(settings: dict[str, Any]) -> None:
    server, setter = place(settings)
    found: list[Any] = []

    def step() -> Any:
        values = build(tf1)
        found.extend(tf1.trainable_variables())
        return values

    with compat.device(setter):
        compat.get_or_create_global_step()
        train = compat.step(step, [])
    (w,) = found

    def run(session: Any) -> float:
        values = session.run(train)
        for last in session.drain():
            values = last
        return float(values["loss"])

    def set_weight(session: Any, value: float) -> None:
        session.assign({"w": w}, {"w": value})

    target = server.target if server else ""
    print(json.dumps(observe(compat, tf1, str(Path.cwd()), run, set_weight, w, target)))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
