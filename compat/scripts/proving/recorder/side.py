"""Runs a program under a recorder, as one side of a proof."""

from __future__ import absolute_import

import functools
import json
import operator
import os
import random
import runpy
import sys
import time

import numpy

from . import cluster, graphs, recorder

_RECORDER = []  # type: list[recorder.Recorder]
_SINCE = []  # type: list[float]


def main(path):
    """Runs the program that a JSON file describes, and exits with its exit code.

    The file has "script", "args", "how" ("plain", "compat.v1" or "run"), the "options" of `compat
    run`, "packages" (the folder of this project), "begun" (the time at which the proof started),
    and the arguments of `Recorder`.
    """
    with open(path) as file:
        spec = json.load(file)
    if bytes is str:  # In Python 2 command-line arguments are bytes.
        spec["script"] = spec["script"].encode("utf-8")
        spec["args"] = [word.encode("utf-8") for word in spec["args"]]
    _RECORDER.append(
        recorder.Recorder(
            spec["folder"],
            spec.get("replay"),
            spec["steps"],
            set(spec.get("details", ())),
            spec.get("every", False),
            spec.get("each", False),
            spec.get("gathers", False),
        )
    )
    # A program that does not train may need its existing checkpoints.
    _SINCE.append(spec["begun"] if spec.get("every") else 0)
    random.seed(0)
    numpy.random.seed(0)
    code = 1
    try:
        code = _run(spec)
    except SystemExit as error:
        code = error.code
    except Exception:  # Python would print it as well, but only after it has waited for threads.
        import traceback

        traceback.print_exc()
    if isinstance(code, str):
        sys.stderr.write(code + "\n")
    code = code if isinstance(code, int) else int(code is not None)
    _RECORDER[0].end(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run(spec):
    script = os.path.abspath(spec["script"])
    if spec["how"] == "plain":
        install()
    else:
        sys.path.append(spec["packages"])
        from compat.scripts.view import namespace

        namespace.when_loaded.append(__name__)
        _install_with_runtime()
        if spec.get("gathers"):  # Gather from the first call on, since there are few calls.
            from compat.runtime.graphs import ahead

            ahead.calls_before = 0
            _RECORDER[0].makes_group = ahead.makes_group
    if spec["how"] == "run":
        from compat.scripts.commands import run

        sys.path.insert(0, "")  # Running the script replaces it by the folder of the script.
        return run.main(list(spec["options"]) + [script] + list(spec["args"]))
    sys.path.insert(0, os.path.dirname(script))
    sys.argv = [spec["script"]] + list(spec["args"])
    runpy.run_path(script, run_name="__main__")
    return None


def _install_with_runtime():
    """Patches TensorFlow as soon as a program has selected its runtime."""
    import compat
    from compat.runtime import interface

    select = interface.select_runtime

    @functools.wraps(select)
    def select_runtime(name="auto"):
        from compat._tensorflow import tf1

        # Without eager execution, a session runs the steps, and the recorder records its calls.
        tf1.disable_eager_execution()
        runtime = select(name)
        # The patches of `compat.v1` are applied when the program imports it, as without `prove`.
        install()
        return runtime

    compat.select_runtime = interface.select_runtime = select_runtime


def install():
    """Patches TensorFlow, once in a process."""
    if not _RECORDER or getattr(_RECORDER[0], "is_installed", False):
        return
    _RECORDER[0].is_installed = True
    import tensorflow  # noqa: F401
    from tensorflow.python.client import session
    from tensorflow.python.ops import gradients

    base = session.BaseSession
    base._do_run = _RECORDER[0].wrap(base._do_run)
    base.close = _after(_RECORDER[0].look_at_all, base.close)
    original = gradients.gradients

    @functools.wraps(original)
    def noted(ys, xs, *args, **kwargs):
        result = original(ys, xs, *args, **kwargs)
        graphs.note(ys, xs, result)
        return result

    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None) or {}
        for space in (names, getattr(names.get("_tfmw_wrapped_module"), "__dict__", {})):
            if space.get("gradients") is original:
                space["gradients"] = noted
    _ignore_checkpoints()
    cluster.install(_RECORDER[0].note_cluster)


def _after(first, method):
    @functools.wraps(method)
    def called(*args, **kwargs):
        first()
        return method(*args, **kwargs)

    return called


def _ignore_checkpoints():
    """Hides the checkpoints that other runs, such as those of an earlier proof, have written."""
    from tensorflow.python.training import saver

    start = time.time()
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None) or {}
        find = names.get("get_checkpoint_state")
        if callable(find) and getattr(find, "__module__", "").startswith("tensorflow"):
            names["get_checkpoint_state"] = _hiding(find, start)
    checkpoints = sys.modules.get("compat.checkpoint.io")
    if checkpoints is not None:
        io, folder = checkpoints.CheckpointIO, operator.attrgetter("folder")
        io.history = _hiding(io.history, start, [], folder)
        io.resumable = _hiding(io.resumable, start, [], folder)
    del saver


def _hiding(find, start, nothing=None, folder=str):
    @functools.wraps(find)
    def get_checkpoint_state(checkpoint_dir, latest_filename=None):
        name = os.path.join(folder(checkpoint_dir) or "", latest_filename or "checkpoint")
        try:
            written = os.path.getmtime(name)
        except OSError:
            written = start
        if _SINCE[0] <= written < start:
            return nothing
        return find(checkpoint_dir, *([latest_filename] if latest_filename else []))

    return get_checkpoint_state
