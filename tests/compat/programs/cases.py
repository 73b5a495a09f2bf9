"""Cases of a program, each as in a new process, and a model for them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Callable

import numpy as np

import compat
from compat import tf, tf1
from compat.runtime import interface

Case = Callable[[Path], Any]
_cases: dict[str, Case] = {}


def case(function: Case) -> Case:
    """Registers a case: it is given a folder that is not there yet, and returns what it saw."""
    _cases[function.__name__] = function
    return function


def fresh() -> None:
    """Forgets all variables, as if the process were new."""
    interface.current_runtime().clear()


def run() -> None:
    """Runs all cases, on the runtime asked for if one is; prints what they saw by name, as JSON."""
    settings = json.loads(sys.argv[1])
    if "runtime" in settings:
        compat.select_runtime(settings["runtime"])
    seen = {}
    for name, function in _cases.items():
        if settings:
            fresh()
        (Path.cwd() / name).mkdir()
        seen[name] = function(Path.cwd() / name / "logs")
    print(json.dumps(seen))


def refusal(function: Callable[[], Any], kind: Any = compat.UserError) -> str:
    """Returns the message of the exception that is raised."""
    try:
        function()
    except kind as error:
        return str(error)
    return "none"


def scalars(folder: Path) -> list[Any]:
    """Returns step, tag and value of each scalar in the folder's event files, in their order.

    Without the steps per second.
    """
    found = []
    for path in sorted(folder.glob("events.out.tfevents.*")):
        for event in tf1.train.summary_iterator(str(path)):
            found += [[event.step, v.tag, v.simple_value] for v in event.summary.value]
    return [entry for entry in found if not entry[1].endswith("/sec")]


def checkpoints(folder: Path) -> list[str]:
    """Returns the names of the folder's checkpoints."""
    return sorted(path.stem for path in folder.glob("*.index"))


class Program:
    """A weight that each update brings nearer to its input: from 0 to 1, costs are 1, 1/4, 1/16."""

    def __init__(self) -> None:
        self.global_step = compat.get_or_create_global_step()
        with compat.device(None):
            self.weight = tf.Variable(np.float32(0), name="weight")
        number = [tf.TensorSpec([], tf.float32)]
        self.train = compat.step(self._train, number)
        self.evaluate = compat.step(lambda x: {"cost": self._cost(x)}, number, on_coordinator=True)

    def _cost(self, x: Any) -> Any:
        return tf.square(self.weight - x)

    def _train(self, x: Any) -> Any:
        cost = self._cost(x)
        with tf.control_dependencies([cost]):
            moved = self.weight.assign_add(0.5 * (x - self.weight))
        with tf.control_dependencies([moved]):
            counted = self.global_step.assign_add(1)
        return {"cost": cost, "counted": getattr(counted, "op", counted)}

    def supervised(self, updates: int, **arguments: Any) -> compat.Supervisor:
        """Makes updates towards 1, with an evaluation before and after each."""
        supervisor = compat.Supervisor(**arguments)
        with supervisor.managed_session() as session:
            for _ in range(updates):
                session.run(self.evaluate, np.float32(1))
                session.run(self.train, np.float32(1))
                session.run(self.evaluate, np.float32(1))
        return supervisor
