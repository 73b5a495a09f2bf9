"""A chief that is killed while it writes a checkpoint, or is refused a folder in use."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import compat
from compat.checkpoint import files
from compat.checkpoint.io import CheckpointIO

if TYPE_CHECKING:
    from tests.compat.programs.cases import Program
else:
    from cases import Program

settings = json.loads(sys.argv[1])
folder = Path(settings["logdir"])


def chief() -> Any:
    """Returns the session of a default supervisor, or of a monitored one."""
    if settings["kind"] == "monitored":
        return compat.MonitoredTrainingSession(checkpoint_dir=str(folder))
    return compat.Supervisor(logdir=str(folder)).managed_session()


def main(argv: list[str]) -> None:
    del argv
    compat.select_runtime(settings["runtime"])
    program = Program()
    with chief() as session:
        session.run(program.train, np.float32(1))
        if settings["holds"]:
            with files.unfinished(str(folder / "model.ckpt-9")) as begun:
                files.write(begun, {"w": np.zeros(9)})
                print("holding", flush=True)
                while not (folder / "go").exists():
                    time.sleep(0.05)
            session.run(program.train, np.float32(1))
    print(json.dumps(CheckpointIO(str(folder)).history()))


if __name__ == "__main__":
    compat.run_main(main)
