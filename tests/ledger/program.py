"""One task of a cluster whose updates write their numbers into a variable on the parameter server.

The ledger, int32 `[capacity]`, counts how often each update was applied. A task that trains keeps
a journal in a file: a line before and after each call, each with the time. Journals, checkpoints
and ledger are what `check.py` compares.
"""

from __future__ import annotations

import ctypes
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import compat
from compat import tf, tf1

_CLONE_NEWNET = 0x40000000


class Journal:
    """The file in which a task writes what it asks for and what it is told."""

    def __init__(self, path: Path) -> None:
        self.path = path
        entries = path.read_text("utf-8").splitlines() if path.exists() else []
        sent = [entry.split() for entry in entries if " sent " in entry]
        # Numbers that are used once: also those of calls of which nothing more was heard.
        self.used = int(sent[-1][2]) + int(sent[-1][3]) if sent else 0
        self._file = os.open(str(path), os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, event: str, *values: Any) -> None:
        """Writes a line that survives the end of this process."""
        line = " ".join(map(str, [f"{time.monotonic():.4f}", event, *values]))
        os.write(self._file, line.encode() + b"\n")


def enter(network: str) -> None:
    """Moves this process, of one thread still, to a network namespace."""
    with open(f"/run/netns/{network}") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter the network {network}")


def build(capacity: int, setter: Any) -> tuple[Any, Any]:
    """Returns the step that applies the update of a number, and the ledger."""
    found: list[Any] = []

    def update(number: Any) -> Any:
        ledger = tf1.get_variable(
            "ledger", [capacity], tf.int32, tf1.zeros_initializer(), use_resource=True,
            trainable=False,
        )  # fmt: skip
        found.append(ledger)
        step = tf1.train.get_global_step()
        seen = step.read_value()
        with tf.control_dependencies([seen]):
            entry = tf1.scatter_add(ledger, number, 1)
        with tf.control_dependencies([entry]):
            counted = step.assign_add(1, read_value=False)
        with tf.control_dependencies([counted]):
            stale = step.read_value() - seen - 1
        return {"number": number, "staleness": stale}

    with compat.device(setter):
        compat.get_or_create_global_step()
        step = compat.step(update, [tf.TensorSpec([], tf.int32)])
    return step, found[0]


class Client:
    """Hands out updates until it is told to stop, and saves checkpoints if it is the chief."""

    def __init__(self, settings: dict[str, Any], index: int, step: Any) -> None:
        self._step, self._settings = step, settings
        # On the modern runtime workers run the calls of one coordinator.
        self._count = settings["count"] if settings["runtime"] == "modern" else 1
        self.folder = Path(settings["folder"])
        # Number n of a task is n * trainers + its index: no two have one number.
        self._index, self._stride = index, settings["trainers"]
        name = settings.get("journal", f"trainer-{index}")
        self.journal = Journal(self.folder / f"{name}.journal")
        self._next = self.journal.used

    def run(self, supervisor: compat.Supervisor, session: Any) -> None:
        """Makes updates."""
        saved, calls = time.monotonic(), 0
        while not (self.folder / "stop").exists() and calls != self._settings.get("calls"):
            self._update(session)
            calls += 1
            if self._index == 0 and time.monotonic() - saved > self._settings["save_every"]:
                self.journal.write("saving")
                prefix = supervisor.save(session)
                self.journal.write("saved", prefix.rpartition("-")[2])
                saved = time.monotonic()
            time.sleep(self._settings["pause"])
        for values in session.drain():
            self._told(values)

    def _update(self, session: Any) -> None:
        count, first = self._count, self._next
        self._next += count
        numbers = (np.arange(first, first + count) * self._stride + self._index).astype(np.int32)
        self.journal.write("sent", first, count)
        if self._is_to("drop", first):
            self._told({"number": numbers[-1], "staleness": 0})
            return
        self._told(session.run_many(self._step, numbers))
        if self._is_to("repeat", first):
            session.run_many(self._step, numbers)

    def _is_to(self, err: str, first: int) -> bool:
        """Whether a client that errs on purpose does so in the call from this number on."""
        return bool(self._settings.get(err) == first // self._count)

    def _told(self, values: Any) -> None:
        last = (int(values["number"]) - self._index) // self._stride
        self.journal.write("done", last, int(values["staleness"]))


def main(settings: dict[str, Any]) -> None:
    """Serves, or makes updates; in one process, if there is no cluster."""
    compat.select_runtime(settings["runtime"])
    index, setter, target = 0, None, ""
    if "network" in settings:
        enter(settings["network"])
    if "cluster" in settings:
        server = compat.Server(
            settings["cluster"],
            settings["job"],
            settings["index"],
            rendezvous_timeout=settings["patience"],
            allow_network="network" in settings,
        )
        if server.serves:
            server.join()
            return
        index, target = server.trainer_index, server.target
        setter = compat.replica_device_setter(
            worker_device=server.task.name, cluster=server.cluster
        )
    step, ledger = build(settings["capacity"], setter)
    client = Client(settings, index, step)
    client.journal.write("opening")
    supervisor = compat.Supervisor(
        is_chief=index == 0,
        logdir=str(client.folder / "log"),
        summary_writer=None,
        save_model_secs=10**6,  # The client saves, and says so.
    )
    with supervisor.managed_session(target) as session:
        if index == 0:
            newest = supervisor.recovery.newest
            client.journal.write("open", newest.rpartition("-")[2] if newest else -1)
        client.run(supervisor, session)
        (client.folder / f"over-{index}").touch()
        if index == 0:
            while len(list(client.folder.glob("over-*"))) < settings["trainers"]:
                time.sleep(0.1)
            found = session.read({"ledger": ledger, "step": supervisor.global_step})
            np.savez(str(client.folder / "ledger.npz"), **found)
            print(json.dumps({"step": int(found["step"])}))


if __name__ == "__main__":
    compat.run_main(lambda argv: main(json.loads(argv[1])))
