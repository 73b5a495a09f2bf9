"""`python -m compat.doctor.facts`: loads TensorFlow and prints facts about it as JSON."""

from __future__ import annotations

import json

from compat._tensorflow import coordinator_module, gpus


def main() -> None:
    """Prints the available runtimes and the number of GPUs that TensorFlow sees."""
    runtimes = ["legacy"] + ["modern"] * (coordinator_module() is not None)
    print(json.dumps({"runtimes": runtimes, "gpus": len(gpus())}))


if __name__ == "__main__":
    main()
