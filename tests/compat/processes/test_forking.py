"""Programs that are forked from a process that has loaded TensorFlow."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from compat.processes.forking import ForkServer
from tests.conftest import PACKAGES

pytestmark = pytest.mark.once
SECONDS = 120.0
ENV = {**os.environ, "PYTHONPATH": PACKAGES, "TF_CPP_MIN_LOG_LEVEL": "3"}
# All that a program can see of how it was started.
PROGRAM = """
import json, os, sys
is_loaded = "tensorflow" in sys.modules
import tensorflow as tf, threadpoolctl
session = tf.compat.v1.Session(graph=tf.Graph())
print(json.dumps({
    "argv": sys.argv, "path": sys.path[0], "name": __name__, "loaded": is_loaded,
    "folder": os.getcwd(), "own": os.environ.get("OWN"), "early": os.environ.get("OPENBLAS_NUM_THREADS"),
    "leads": os.getpid() == os.getsid(0), "stdin": sys.stdin.read(),
    "shown": open("/proc/self/cmdline").read().rstrip(chr(0)).split(chr(0)),
    "descriptors": [n for n in map(int, os.listdir("/proc/self/fd")) if os.path.exists(f"/proc/self/fd/{n}")],
    "threads": max(pool["num_threads"] for pool in threadpoolctl.threadpool_info()),
    "origin": __import__("multiprocessing.process").process.ORIGINAL_DIR,
    "random": [__import__("random").random(), float(__import__("numpy").random.rand())],
}))
"""  # noqa: E501
Start = Callable[..., Any]


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer() as started:
        yield started


@pytest.fixture
def start(server: ForkServer, tmp_path: Path) -> Start:
    """Starts a piece of source; `output` is what it has written."""

    def begin(
        source: str, *argv: str, env: Any = None, module: bool = False, **options: Any
    ) -> Any:
        (tmp_path / "program.py").write_text(source, encoding="utf-8")
        program = ["-m", "program"] if module else ["program.py"]
        with (tmp_path / "output").open("wb") as out:
            outputs = {"stdout": out.fileno(), "stderr": out.fileno()}
            command, env = [sys.executable, *program, *argv], {**ENV, **(env or {})}
            return server.start(command, env=env, cwd=str(tmp_path), **outputs, **options)

    return begin


def output(tmp_path: Path) -> str:
    return (tmp_path / "output").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", [False, True])
def test_a_program_is_as_if_it_were_started_alone(
    start: Start, tmp_path: Path, module: bool
) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    try:
        program = start(
            PROGRAM, "--a=1", env={"OWN": "mine"}, module=module, pass_fds=[reading],
            watchdog=writing,
        )  # fmt: skip
        assert program.wait(SECONDS) == 0, output(tmp_path)
        assert os.read(reading, 99) == b"%d " % program.pid
    finally:
        os.close(reading)
        os.close(writing)
    found = json.loads(output(tmp_path).splitlines()[-1])
    folder, script = str(tmp_path), "program.py"
    called = str(tmp_path / script) if module else script
    assert found["argv"] == [called, "--a=1"]
    assert (found["path"], found["folder"]) == (folder, folder)
    assert (found["name"], found["own"], found["stdin"]) == ("__main__", "mine", "")
    assert found["origin"] == folder
    assert found["loaded"]
    assert found["leads"]
    assert found["early"] == os.environ.get("OPENBLAS_NUM_THREADS")
    assert found["shown"][1:] == [*(["-m", "program"] if module else [script]), "--a=1"]
    # Beside the one with which the program lists them.
    assert {0, 1, 2, reading} <= set(found["descriptors"])
    assert len(found["descriptors"]) <= 5
    assert found["threads"] == int(
        os.environ.get("OPENBLAS_NUM_THREADS", len(os.sched_getaffinity(0)))
    )


def test_two_programs_do_not_draw_the_same_numbers(start: Start, tmp_path: Path) -> None:
    drawn = []
    for _ in range(2):
        assert start(PROGRAM).wait(SECONDS) == 0
        drawn += json.loads(output(tmp_path).splitlines()[-1])["random"]
    assert len(set(drawn)) == 4


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        ("print('well')", 0, "well\n"),
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit('error: a line')", 1, "error: a line\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, ""),
        ("import atexit; atexit.register(print, 'at the end')", 0, "at the end\n"),
        ("import threading; threading.Thread(target=print, args=['other']).start()", 0, "other\n"),
    ],
)
def test_it_ends_as_it_wants(
    start: Start, tmp_path: Path, source: str, code: int, said: str
) -> None:
    assert start(source).wait(SECONDS) == code
    assert output(tmp_path) == said


def test_an_error_leaves_its_traceback(start: Start, tmp_path: Path) -> None:
    assert start("def fail():\n    return 1 / 0\n\nfail()").wait(SECONDS) == 1
    assert output(tmp_path).startswith("Traceback")
    assert output(tmp_path).endswith("ZeroDivisionError: division by zero\n")


def test_it_runs_until_then(start: Start, tmp_path: Path) -> None:
    program = start("import time; print('begun', flush=True); time.sleep(600)")
    with pytest.raises(subprocess.TimeoutExpired):
        program.wait(0.1)
    assert program.poll() is None
    deadline = time.monotonic() + SECONDS
    while output(tmp_path) != "begun\n" and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(program.pid, signal.SIGINT)  # Which Python's own handler takes.
    assert program.wait(SECONDS) == -signal.SIGINT or "KeyboardInterrupt" in output(tmp_path)


def test_what_the_server_was_not_loaded_with_is_not_forked(start: Start, tmp_path: Path) -> None:
    assert start("", env={"TF_ENABLE_ONEDNN_OPTS": "0"}) is None
    assert start("", env={"TF_CONFIG": "{}"}).wait(SECONDS) == 0, "read when it is used"


def test_another_command_is_not_forked(server: ForkServer) -> None:
    for argv in (
        ["true"],
        [sys.executable],
        [sys.executable, "-c", ""],
        [sys.executable, "none.py"],
    ):
        assert server.start(argv, env=ENV, stdout=1, stderr=2) is None


def test_a_server_with_a_thread_forks_nothing(tmp_path: Path) -> None:
    (tmp_path / "threaded.py").write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=[600], daemon=True).start()\n"
    )
    (tmp_path / "program.py").write_text("")
    env = {**ENV, "PYTHONPATH": os.pathsep.join([PACKAGES, str(tmp_path)])}
    reading, writing = os.pipe()
    with ForkServer(["threaded"]) as server, open(reading, "rb") as end:
        argv = [sys.executable, str(tmp_path / "program.py")]
        assert server.start(argv, env=env, stdout=1, stderr=2, watchdog=writing) is None
        os.close(writing)
        assert end.read() == b"", "it keeps nothing open that it was handed"


def test_without_its_server_a_program_is_killed(tmp_path: Path) -> None:
    """Nobody would learn of its end; those that follow are not forked."""
    (tmp_path / "program.py").write_text("import time; time.sleep(600)")
    argv = [sys.executable, str(tmp_path / "program.py")]
    with ForkServer() as server:
        program = server.start(argv, env=ENV, stdout=1, stderr=2)
        assert program is not None
        with open(f"/proc/{program.pid}/stat", encoding="utf-8") as file:
            parent = int(file.read().rpartition(")")[2].split()[1])
        os.kill(parent, signal.SIGKILL)
        assert program.wait(SECONDS) == -signal.SIGKILL
        assert server.start(argv, env=ENV, stdout=1, stderr=2) is None


def test_a_signal_to_stop_reaches_programs_and_not_their_server(tmp_path: Path) -> None:
    """All get it at the same time, and a server that it ended would take the programs with it."""
    (tmp_path / "program.py").write_text(
        "import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: exit(7))\n"
        "open('ready', 'w').close()\ntime.sleep(600)"
    )
    argv = [sys.executable, str(tmp_path / "program.py")]
    with ForkServer() as server:
        program = server.start(argv, env=ENV, cwd=str(tmp_path), stdout=1, stderr=2)
        assert program is not None
        with open(f"/proc/{program.pid}/stat", encoding="utf-8") as file:
            parent = int(file.read().rpartition(")")[2].split()[1])
        until = time.monotonic() + SECONDS
        while not (tmp_path / "ready").exists():
            assert time.monotonic() < until
            time.sleep(0.02)
        for pid in (parent, program.pid):
            os.kill(pid, signal.SIGTERM)
        assert program.wait(SECONDS) == 7


NESTED = """
import os, sys
from compat.processes.forking import ForkServer, inherited, start
with ForkServer() as server:
    reading, writing = os.pipe()
    os.write(writing, b"read")
    os.close(writing)
    outputs = {"stdin": reading, "stdout": 1, "stderr": 2}
    argv, env = [sys.executable, "inner.py"], {**os.environ, "PYTHONUNBUFFERED": "1"}
    forked = [start(by, argv, env=env, **outputs) for by in (server, inherited("json", env))]
    codes = [program.wait(60) for program in forked if program]
    other = server.start(argv, env={**env, "TF_ENABLE_ONEDNN_OPTS": "0"}, stdout=1, stderr=2)
    rest = server.start([sys.executable, "long.py"], env=env, stdout=1, stderr=2)
print(codes, inherited("math", env), other, rest.wait(60), os.getppid())
"""


def test_a_program_uses_the_server_that_has_forked_it(tmp_path: Path) -> None:
    (tmp_path / "outer.py").write_text(NESTED)
    (tmp_path / "inner.py").write_text(
        "import os, sys\nprint(os.getppid(), 'tensorflow' in sys.modules, sys.stdin.read())\n"
        "sys.stdout.write('unbuffered\\n')\nos._exit(5)\n"
    )
    (tmp_path / "long.py").write_text("import time; time.sleep(600)")
    with ForkServer(["json"]) as server, (tmp_path / "output").open("wb") as out:
        argv, outputs = [sys.executable, "outer.py"], {"stdout": out.fileno(), "stderr": 2}
        env = {name: value for name, value in ENV.items() if name != "PYTHONUNBUFFERED"}
        program = server.start(argv, env=env, cwd=str(tmp_path), **outputs)
        assert program is not None
        assert program.wait(SECONDS) == 0
    *inner, outer = output(tmp_path).splitlines()
    parent = outer.rpartition(" ")[2]
    assert inner == [f"{parent} True read", "unbuffered", f"{parent} True ", "unbuffered"]
    assert outer.startswith("[5, 5] None None -9 ")
