"""`python -m compat run`: runs an unchanged TensorFlow 0.8 to 1.15 script on today's release.

The script runs with your permissions, as with `python SCRIPT`. It downloads only
the files that the script requests.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import importlib
import importlib.util
import json
import os
import runpy
import sys
import traceback
import types
from typing import Any

from compat.contrib import era
from compat.errors import Parser, PeerError, UserError, one_line
from compat.processes import stop_signals
from compat.runtime.graphs import ahead
from compat.scripts.clusters import addresses, inherited, tasks
from compat.scripts.reading import conversion
from compat.scripts.reading import program as reading
from compat.scripts.view import changes, imports, libraries, namespace

_TRACK = "compat.scripts.clusters.track"
_AHEAD = "compat.runtime.graphs.ahead"
_MODERN = "compat.runtime.graphs.session"
_HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_MISSING = (namespace.MissingName, libraries.MissingImport)
_RUNPY = ("<frozen runpy>", "<frozen importlib._bootstrap>")
_USAGE = "python -m compat run [options] (SCRIPT | -m MODULE | -c CODE) [arguments of the script]"


def main(argv: list[str]) -> int:
    """Runs the command line of `run`; returns the exit code of the script."""
    options = parser().parse_args(argv)
    given = {name: getattr(options, name) for name in changes.FLAGS}
    changes.chosen.update((name, value) for name, value in given.items() if value)
    kind, target, arguments = program(options)
    if options.cluster:
        if kind == "code":
            raise UserError("--cluster starts a script or a module, and -c was given; name a file")
        counts = tasks.parse(options.cluster)
        words = ["-m", target] if kind == "module" else [target]
        with stop_signals.raised():
            return tasks.run(counts, words, _own(options), arguments, options.task_args)
    _prepare(options, target)
    if kind == "code" and "multiprocessing" in target:
        _load_main_as_a_script()
    code = _run(kind, target, arguments)
    if options.ahead:
        code = _end_ahead(code)
    if options.track:
        importlib.import_module(_TRACK).RECORD.close(code)
    return code


def _prepare(options: argparse.Namespace, target: str) -> None:
    """Prepares this process, and the child processes that it starts, for the script."""
    era.chosen = options.era
    if options.hosts:
        os.environ[inherited.HOSTS] = json.dumps(addresses.parse(options.hosts))
    if options.local:
        addresses.place_here(target)
    if addresses.active() and "TF_CONFIG" in os.environ:
        os.environ["TF_CONFIG"] = addresses.mapped_tf_config(os.environ["TF_CONFIG"])
    if options.data_dir:
        os.environ["MNIST_DATA_DIR"] = os.path.abspath(options.data_dir)
    os.environ.update(tasks.log_level())
    inherited.prepare_children(_own(options))
    if options.runtime == "modern":
        # This comes first: other patches of sessions are applied on top of it.
        namespace.when_loaded.insert(0, _MODERN)
    namespace.when_loaded.extend(namespace.FOR_SCRIPTS)
    if options.allow_network:
        os.environ[inherited.ALLOW_NETWORK] = "1"
    if options.ahead:
        ahead.chosen = options.ahead
        namespace.when_loaded.append(_AHEAD)
    namespace.when_loaded.append(changes.__name__)
    if options.track:
        os.environ[inherited.TRACK] = "1"
        namespace.when_loaded.append(_TRACK)
    imports.install()


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the options before the script's own arguments."""
    parser = Parser(
        prog="python -m compat run", usage=_USAGE, description=__doc__, allow_abbrev=False
    )
    add = parser.add_argument
    add(
        "--era", choices=era.CHOICES, default="auto", help="era of the script's API (default: auto)"
    )
    add(
        "--runtime",
        choices=("legacy", "modern"),
        default="legacy",
        help="variables are stored by TensorFlow 1.x (legacy) or TensorFlow 2 (default: legacy)",
    )
    add(
        "--ahead",
        type=int,
        default=0,
        metavar="CALLS",
        help="make so many equal calls of session.run as one: see docs/scripts.md",
    )
    add("--data_dir", help="folder of MNIST, if the script's has none")
    add("--cluster", help="start all tasks on this machine: ps=1,worker=3")
    add("--task_args", help="arguments of each task: '--job={job} --id={index}'")
    add("--track", action="store_true", help="log one MLflow run, events of the chief")
    add("--hosts", help="map addresses: pc-01:2222=127.0.0.1:5001,...")
    add("--local", action="store_true", help="map all hosts to this machine")
    add("--allow_network", action="store_true", help="allow other machines: see docs/security.md")
    for name, option in changes.FLAGS.items():
        add(f"--{name}", **option.argument)
    for flag in ("-u", "-B", "-O", "-s", "-E", "-I"):
        # These are options of Python itself.
        add(flag, action="store_true", help=argparse.SUPPRESS)
    add("-m", dest="module", nargs=argparse.REMAINDER, help="run a module")
    add("-c", dest="code", nargs=argparse.REMAINDER, help="run a line of code")
    add("script", nargs=argparse.REMAINDER, help="a Python file or a notebook")
    return parser


def _own(options: argparse.Namespace) -> list[str]:
    words = [f"--era={options.era}", f"--runtime={options.runtime}"]
    if options.ahead:
        words.append(f"--ahead={options.ahead}")
    words += [f"--{name}" for name in ("track", "allow_network") if getattr(options, name)]
    if options.data_dir:
        words.append(f"--data_dir={os.path.abspath(options.data_dir)}")
    return words + changes.words()


def program(options: argparse.Namespace) -> tuple[str, str, list[str]]:
    """Returns the kind of program ("module", "code", "script"), its name and its arguments."""
    for kind in ("module", "code", "script"):
        words = getattr(options, kind)
        if words:
            return kind, words[0], words[1:]
    raise UserError(f"no script was given; usage: {_USAGE}")


def _run(kind: str, target: str, arguments: list[str]) -> int:
    """Runs a program as `__main__`; returns its exit code."""
    shown = target if kind == "script" else f"-{kind[0]}"
    parts: list[conversion.Source] = []
    try:
        if kind == "module":
            _run_module(target, arguments)
            return 0
        if kind == "code":
            parts, folder = [conversion.from_text(target, "<string>")], ""
        else:
            parts, folder = conversion.read(target), os.path.dirname(os.path.realpath(target))
        sys.argv = [target if kind == "script" else "-c", *arguments]
        sys.path[0] = folder
        _run_parts(parts, target if kind == "script" else None)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        return 130
    except SyntaxError as error:
        if error.filename not in [part.filename for part in parts]:
            return _show(error, shown)
        line = one_line(f"{error.filename}:{error.lineno or 1}: {error.msg}; correct the script")
        print(f"error: {line}", file=sys.stderr, flush=True)
        return UserError.exit_code
    except BaseException as error:
        return _show(error, shown)
    return 0


def _end_ahead(code: int) -> int:
    """Makes the `session.run` calls that `--ahead` has gathered and not made yet.

    If the script was interrupted by Ctrl+C (`code` is 130), drops them. Returns `code`, or the exit
    code of an error that a call raises.
    """
    try:
        ahead.end(is_interrupted=code == 130)
    except BaseException as error:
        return _show(error, "--ahead")
    return code


def _load_main_as_a_script() -> None:
    """Makes a spawned `multiprocessing` child load the script as its parent did."""
    spawn: Any = importlib.import_module("multiprocessing.spawn")

    def run_path(path: str, run_name: str) -> dict[str, Any]:
        module = types.ModuleType(run_name)
        module.__file__ = path
        _run_in(module, conversion.read(path))
        return vars(module)

    spawn.runpy = types.SimpleNamespace(run_path=run_path, run_module=runpy.run_module)


def _run_parts(
    parts: list[conversion.Source], path: str | None, package: str | None = None
) -> None:
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    module.__dict__.update(__spec__=None, __package__=package)
    if path is not None:
        module.__file__ = path
    _run_in(module, parts)


def _run_in(module: types.ModuleType, parts: list[conversion.Source]) -> None:
    era.found = reading.era(parts)
    if any(part.python2 for part in parts):
        namespace.when_loaded.append("compat.scripts.view.text")
    for part in parts:
        imports.run(part, module)


def _run_module(name: str, arguments: list[str]) -> None:
    """Runs a module as the main program, as `python -m` does.

    A module of the user's own gets TensorFlow with its old names; a module of an installed package
    gets TensorFlow as it is.
    """
    sys.path[0] = os.getcwd()
    spec: Any = None
    with contextlib.suppress(ImportError):  # Running the module reports the error.
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    is_own = spec is not None and isinstance(spec.loader, imports.Loader)
    sys.argv = [spec.origin if is_own else name, *arguments]
    if is_own:
        _run_parts(conversion.read(spec.origin), spec.origin, spec.parent)
    else:
        runpy.run_module(name, run_name="__main__", alter_sys=True)


def _show(error: BaseException, script: str) -> int:
    """Prints an error; returns the exit code.

    A known error, such as a `UserError`, is printed after the file and line of the script where it
    occurred, or after `script` if there is none. Other errors are printed with their traceback.
    """
    known = _known(error)
    if known is not None:
        place = _place(error, script)
        where = "" if place == script and script in str(known) else f"{place}: "
        print(f"error: {where}{known}", file=sys.stderr, flush=True)
        return getattr(known, "exit_code", UserError.exit_code)
    trace = traceback.TracebackException.from_exception(error)
    _without_ours(trace)
    print("".join(trace.format()), end="", file=sys.stderr, flush=True)
    return 1


def _known(error: BaseException | None) -> BaseException | None:
    """Returns the UserError that is `error` or one of its causes, or None."""
    while error is not None:
        if isinstance(error, (UserError, PeerError, *_MISSING)):
            return error
        if isinstance(error, ImportError) and str(error).startswith("tf."):
            return error
        error = error.__cause__
    return None


def _place(error: BaseException, script: str) -> str:
    """Returns "file:line" of the script's innermost line."""
    place = script
    for frame, line in traceback.walk_tb(error.__traceback__):
        # Modules of the script have a dictionary of builtins of their own.
        if "__import__" in frame.f_builtins and frame.f_builtins is not vars(builtins):
            place = f"{frame.f_code.co_filename}:{line}"
    return place


def _without_ours(trace: Any) -> None:
    """Removes the frames of this package, also from the causes of the error."""
    while trace is not None:
        trace.stack[:] = [
            frame
            for frame in trace.stack
            if not frame.filename.startswith(_HERE + os.sep) and frame.filename not in _RUNPY
        ]
        _without_ours(trace.__cause__)
        trace = trace.__context__
