"""Asks for the modern runtime, with or without eager execution, then for any; prints answers."""

from __future__ import annotations

import json
import sys
from typing import Any

import compat
from compat import tf1
from compat._tensorflow import coordinator_module


def main(settings: dict[str, Any]) -> None:
    report: dict[str, Any] = {"has_modern": coordinator_module() is not None}
    if settings.get("without_eager"):
        tf1.disable_v2_behavior()
    try:
        report["modern"] = compat.select_runtime("modern").name
    except compat.UserError as error:
        report["modern"] = str(error)
    if not settings.get("without_eager"):
        report["auto"] = compat.select_runtime("auto").name
    print(json.dumps(report))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
