"""Reads folders of checkpoints of which one file is broken; prints what came of each."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import traceback
from pathlib import Path

from compat import checkpoint
from compat.errors import UserError

DEADLINE_SECS = 20


def read(folder: Path) -> str:
    """Returns "" if the newest checkpoint was read, else how it was refused, or a traceback."""
    signal.alarm(DEADLINE_SECS)  # What has no end ends the process.
    try:
        for prefix in checkpoint.history(str(folder))[-1:]:
            checkpoint.read(prefix)
    except UserError as error:
        return str(error)
    except Exception:
        return traceback.format_exc(limit=-3)
    finally:
        signal.alarm(0)
    return ""


def main() -> None:
    settings = json.loads(sys.argv[1])
    whole, folder = Path(settings["whole"]), Path("logdir")
    shutil.copytree(str(whole), str(folder))
    said = []
    for name, raw in json.loads(Path(settings["inputs"]).read_text("utf-8")):
        (folder / name).write_bytes(bytes.fromhex(raw))
        said.append(read(folder))
        shutil.copy(str(whole / name), str(folder / name))
    print(json.dumps(said))


if __name__ == "__main__":
    main()
