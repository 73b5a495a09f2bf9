"""Reads folders of checkpoints of which one file is broken; prints what came of each."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import traceback
from pathlib import Path

from compat._tensorflow import tf1
from compat.checkpoint import files
from compat.checkpoint.io import CheckpointIO
from compat.errors import UserError
from compat.runtime.saver import Saver

DEADLINE_SECS = 20


def variables(folder: Path) -> dict[str, object]:
    """Returns the variables that a whole checkpoint has the values of."""
    values = files.read(CheckpointIO(str(folder)).history()[-1])
    with tf1.Graph().as_default():
        return {
            name: tf1.get_variable(name, value.shape, value.dtype, use_resource=True)
            for name, value in values.items()
        }


def read(folder: Path, model: dict[str, object]) -> list[str]:
    """Returns the lines that were said when a training went on, or a traceback."""
    signal.alarm(DEADLINE_SECS)  # What has no end ends the process.
    said: list[str] = []
    try:
        prefixes = CheckpointIO(str(folder)).history()
        if prefixes:
            Saver(model).recover(prefixes, said.append)
    except UserError as error:
        said.append(str(error))
    except Exception:
        said.append(traceback.format_exc(limit=-3))
    finally:
        signal.alarm(0)
    return said


def main() -> None:
    settings = json.loads(sys.argv[1])
    said = []
    for whole, inputs in json.loads(Path(settings["inputs"]).read_text("utf-8")).items():
        folder = Path("logdir", Path(whole).name)
        shutil.copytree(whole, str(folder))
        model = variables(folder)
        said.append(read(folder, model))
        for name, raw in inputs:
            (folder / name).write_bytes(bytes.fromhex(raw))
            said.append(read(folder, model))
            shutil.copy(str(Path(whole, name)), str(folder / name))
    print(json.dumps(said))


if __name__ == "__main__":
    main()
