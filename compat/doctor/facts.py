"""`python -m compat.doctor.facts`: loads TensorFlow and prints facts about it as JSON."""

from __future__ import annotations

import json

from compat._tensorflow import coordinator_module, gpus

if __name__ == "__main__":
    runtimes = ["legacy"] + ["modern"] * (coordinator_module() is not None)
    print(json.dumps({"runtimes": runtimes, "gpus": len(gpus())}))
