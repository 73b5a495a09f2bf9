"""Runs one of TensorFlow's test files on a runtime; prints the tests that do not pass.

The file is read from the git directory of a TensorFlow 2.0 tree, and run by the TensorFlow that is
installed: on the legacy runtime with our names in it, on the modern one with TensorFlow's own,
whose sessions run on it. Only its imports of modules that have moved are changed.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
import types
import unittest
from typing import TYPE_CHECKING, Any, Mapping

import compat
from compat.runtime.graphs import ahead

if TYPE_CHECKING:
    from tests.upstream import old_tree
else:
    import old_tree

TRAINING = "tensorflow.python.training"
# Of which module of TensorFlow's each name is; `training` has them all.
OURS = {
    "ChiefSessionCreator": "monitored_session",
    "ClusterSpec": "server_lib",
    "MonitoredSession": "monitored_session",
    "MonitoredTrainingSession": "monitored_session",
    "Saver": "saver",
    "Scaffold": "monitored_session",
    "Server": "server_lib",
    "SingularMonitoredSession": "monitored_session",
    "Supervisor": "supervisor",
    "WorkerSessionCreator": "monitored_session",
    "replica_device_setter": "device_setter",
}


class Proxy(types.ModuleType):
    """A module of TensorFlow's, some of whose names are ours."""

    def __init__(self, module: types.ModuleType, names: dict[str, Any]) -> None:
        self.__dict__.update(names, _module=module, __name__=module.__name__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_module"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_module"], name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self.__dict__["_module"], name)


def load(file: str, ours: Mapping[str, str]) -> types.ModuleType:
    """Returns the module of a test file, whose names of modules of TensorFlow's are proxies."""
    package: Any = importlib.import_module(TRAINING)
    test_util: Any = importlib.import_module("tensorflow.python.framework.test_util")
    originals, proxies = {}, {}
    for module in {*OURS.values(), "training"}:
        originals[module] = importlib.import_module(f"{TRAINING}.{module}")
        names = {n: getattr(compat, n) for n, m in ours.items() if module in (m, "training")}
        proxies[module] = Proxy(originals[module], names)
    vars(package).update(proxies)
    test_util.server_lib = proxies["server_lib"]
    loaded = types.ModuleType("upstream_test")
    sys.modules[loaded.__name__] = loaded
    exec(compile(old_tree.source(file), file, "exec"), vars(loaded))
    vars(package).update(originals)
    return loaded


def tests(module: types.ModuleType) -> list[unittest.TestCase]:
    """Returns the tests that a module defines."""
    cases = [
        case
        for case in vars(module).values()
        if isinstance(case, type) and issubclass(case, unittest.TestCase)
    ]
    return [
        case(name)
        for case in cases
        if case.__module__ == module.__name__
        for name in unittest.defaultTestLoader.getTestCaseNames(case)
        if name != "test_session"  # A method of TensorFlow's base class.
    ]


def failure(test: unittest.TestCase, runtime: Any) -> str:
    """Returns the line that names why a test does not pass; empty if it does."""
    runtime.server = None  # As in a process of its own.
    result = unittest.TestResult()
    test.run(result)
    for _, trace in result.failures + result.errors:
        after = trace.rpartition("Traceback (most recent call last):")[2].splitlines()
        return next((line for line in after if line and not line.startswith(" ")), "?")[:300]
    return "skipped: " + result.skipped[0][1] if result.skipped else ""


def main(settings: dict[str, Any]) -> None:
    compat.tf1.disable_v2_behavior()  # First: the runtime enables resource variables.
    runtime = compat.select_runtime(settings["runtime"])
    compat.tf1.logging.set_verbosity("ERROR")
    if settings["ahead"]:
        ahead.begin(settings["ahead"], after=0)
    old_tree.prepare(settings["git_dir"])
    module = load(settings["file"], OURS if runtime.name == "legacy" else {})
    seen = {test.id().partition(".")[2]: failure(test, runtime) for test in tests(module)}
    print()
    print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # Servers and threads that tests have left do not keep it.
