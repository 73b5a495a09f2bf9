"""Reads files of a TensorFlow 2.0 tree, and shows them today's TensorFlow as they expect it."""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import re
import socket
import subprocess
import sys
import types
import unittest
from typing import TYPE_CHECKING, Any

import compat
from compat import tf1

if TYPE_CHECKING:
    from tests.upstream import contrib
else:
    import contrib

STRATEGIES = "tensorflow.contrib.training.python.training.device_setter"
REPLACED = {
    STRATEGIES: {
        name: getattr(compat, name)
        for name in ("GreedyLoadBalancingStrategy", "RandomStrategy", "byte_size_load_fn")
    }
}
# Patterns in a source, and what is put there.
MOVED_IMPORTS = {
    r'ops\.device\("/job:local"\)': 'ops.device("/job:localhost")',  # Of create_local_server.
    r"int\(2 \* self\._labels\[i\]": "int(2 * self._labels[i, 0]",  # NumPy wants a scalar.
    r"tensorflow\.python\.training\.tracking\b": "tensorflow.python.trackable",
    r"^from tensorflow\.contrib\.framework\.python\.framework import checkpoint_utils": (
        "from tensorflow.python.training import checkpoint_utils"
    ),
    r"^from tensorflow\.python\.trackable import tracking as": (
        "from tensorflow.python.trackable import autotrackable as"
    ),
    r"^ops\.RegisterShape\(.*": "",  # Shapes are those of C++ now.
    r"^from tensorflow\.python\.trackable import util as": (
        "from tensorflow.python.checkpoint import checkpoint as"
    ),
}
# Where the files look for a name, and where it is now, in `tensorflow.python`.
MOVED_NAMES = {
    "ops.variables.is_variable_initialized": "ops.state_ops.is_variable_initialized",
    "ops.variable_scope.variable": "ops.variable_v1.VariableV1",
    "ops.array_ops.stack": "ops.array_ops_stack.stack",
    "ops.control_flow_ops.Assert": "ops.control_flow_assert.Assert",
    "pywrap_tensorflow.NewCheckpointReader": "training.py_checkpoint_reader.NewCheckpointReader",
    "ops.variables.VariableV1": "ops.variable_v1.VariableV1",
    "framework.ops.IndexedSlices": "framework.indexed_slices.IndexedSlices",
    "framework.ops.Tensor": "framework.tensor.Tensor",
    "framework.ops.convert_to_tensor": "framework.tensor_conversion.convert_to_tensor_v1",
    "ops.control_flow_ops.while_loop": "ops.while_loop.while_loop",
    "ops.control_flow_ops.cond": "ops.cond.cond",
    "training.saver.checkpoint_exists": "training.checkpoint_management.checkpoint_exists",
}
UNITTEST_ALIASES = {  # Gone with Python 3.12.
    "assertEquals": "assertEqual",
    "assertNotEquals": "assertNotEqual",
    "assertRaisesRegexp": "assertRaisesRegex",
    "assertRegexpMatches": "assertRegex",
    "assertItemsEqual": "assertCountEqual",
    "assert_": "assertTrue",
}
_git_dir = ""


def source(file: str) -> str:
    """Returns the source of a file of the tree, with the imports of today."""
    shown = subprocess.run(
        ["git", "--git-dir", _git_dir, "show", f"HEAD:{file}"],
        capture_output=True,
        check=True,
    )
    text = shown.stdout.decode()
    for old, new in MOVED_IMPORTS.items():
        text = re.sub(old, new, text, flags=re.MULTILINE)
    return text


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads `tensorflow.contrib` from the tree; its packages have nothing in them."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not (name + ".").startswith("tensorflow.contrib."):
            return None
        is_package = name not in contrib.MODULES
        if is_package:
            with contextlib.suppress(subprocess.CalledProcessError):
                source(name.replace(".", "/") + ".py")
                is_package = False
        return importlib.machinery.ModuleSpec(name, self, is_package=is_package)

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        names = vars(module)
        if module.__name__ in contrib.MODULES:
            names.update(contrib.MODULES[module.__name__])
        elif not hasattr(module, "__path__"):
            file = module.__name__.replace(".", "/") + ".py"
            exec(compile(source(file), file, "exec"), names)
        names.update(REPLACED.get(module.__name__, {}))


def prepare(git_dir: str) -> None:
    """Puts names back where the files look for them; loads contrib from `git_dir`."""
    global _git_dir
    _git_dir = git_dir
    sys.meta_path.insert(0, Finder())
    importlib.import_module("absl.flags").FLAGS(["test"], known_only=True)
    for old, new in MOVED_NAMES.items():
        module, _, name = f"tensorflow.python.{old}".rpartition(".")
        origin, _, attribute = f"tensorflow.python.{new}".rpartition(".")
        holder = importlib.import_module(module)
        if not hasattr(holder, name):
            setattr(holder, name, getattr(importlib.import_module(origin), attribute))
    config: Any = importlib.import_module("tensorflow.core.protobuf.config_pb2")
    if not hasattr(config, "RPCOptions"):
        config.RPCOptions = type(tf1.ConfigProto().rpc_options)
    portpicker: Any = types.ModuleType("portpicker")
    portpicker.pick_unused_port = _unused_port
    sys.modules.setdefault("portpicker", portpicker)
    # It reads what protobuf has no more, before it can show the difference that it has found.
    compare: Any = importlib.import_module("tensorflow.python.util.protobuf.compare")
    compare.NormalizeNumberFields = lambda message: message
    for alias, name in UNITTEST_ALIASES.items():
        if not hasattr(unittest.TestCase, alias):
            setattr(unittest.TestCase, alias, getattr(unittest.TestCase, name))


def _unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port: int = probe.getsockname()[1]
        return port
