"""`Server` and `ClusterSpec` take what TensorFlow's do, and programs keep their exit codes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

import pytest

import compat
from compat.cluster import ports
from tests.conftest import PACKAGES

if TYPE_CHECKING:
    from tests.conftest import RunProgram

pytestmark = pytest.mark.cluster

# A program of the ordinary kind; its only parameter server never comes.
PROGRAM = """
import sys
from absl import flags
import compat
flags.DEFINE_string("hosts", None, "host:port of the ps and of the worker")
flags.DEFINE_string("error", "", "what to raise")
def main(argv):
    ps, worker = flags.FLAGS.hosts.split(",")
    if flags.FLAGS.error:
        raise getattr(compat, flags.FLAGS.error)("the program's own words")
    cluster = compat.ClusterSpec({"ps": [ps], "worker": [worker]})
    server = compat.Server(cluster, "worker", 0, rendezvous_timeout=1, runtime="legacy")
    server.wait_for_peers(everybody=True)
compat.run_main(main)
"""
SECONDS = 120


@pytest.fixture(scope="module")
def seen(run_program: RunProgram, programs: Path, runtime: str) -> Any:
    return run_program(programs / "servers.py", runtime=runtime)


@pytest.mark.parametrize(
    "fact", ["is theirs", "is ours", "taken", "message", "returned", "resolved", "port"]
)
def test_a_cluster_is_taken_for_one_of_tensorflows(seen: Any, fact: str) -> None:
    assert seen[fact] is True


def test_a_local_server(seen: Any) -> None:
    assert (seen["local"], seen["local device"]) == (42.0, "/job:localhost/task:0")
    assert seen["threads"] == 1


def test_a_server_def(seen: Any) -> None:
    assert (seen["defined"], seen["defined device"]) == (42.0, "/job:local/task:37")
    assert seen["defined threads"] == 2


def test_errors_are_of_tensorflows_classes(seen: Any) -> None:
    assert seen["no job"] == ["UserError", "ValueError"]
    assert seen["evaluator"] == ["UserError", "ValueError"]
    wrong = ["UserError", "ValueError", "TypeError", "InvalidArgumentError"]
    assert seen["not a cluster"] == wrong
    assert seen["no port"] == ["UserError", "ValueError", "InvalidArgumentError"]
    assert seen["port in use"] == ["UserError", "ValueError", "UnknownError"]


def test_an_error_of_the_program_is_not_a_lost_peer(seen: Any) -> None:
    """All peers answer; only what TensorFlow reports of a restart is one."""
    assert seen["own error"] == "None"
    assert seen["restarted peer"] == "lost a task of the cluster"


def test_an_unavailable_storage_is_not_a_lost_peer(seen: Any) -> None:
    assert seen["storage"] == ["None"] * 4
    assert seen["back"] == [
        "lost a task of the cluster (Socket closed)",
        "lost /job:local/task:0 at ADDRESS, which is back (OS Error)",
    ]


def test_threads_choose_one_runtime(seen: Any) -> None:
    assert seen["runtimes"] == 1


def test_classes_of_hooks_are_classes(seen: Any) -> None:
    assert seen["hooks"] == [True, False, True, True]


def test_a_cluster_is_pickled(seen: Any) -> None:
    assert seen["copies"] == ["ClusterSpecTrue"] * 2


def test_a_strategy_starts_the_server_of_a_coordinator(seen: Any) -> None:
    assert seen["coordinator"] == "retrying"


@pytest.fixture
def run(tmp_path: Path, start_program: Callable[..., Any]) -> Callable[..., Any]:
    """Runs the program; returns its exit code and what it wrote to standard error."""

    def run(*flags: str) -> tuple[int, str]:
        (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
        with ports.reserve() as ps, ports.reserve() as worker, (tmp_path / "err").open("wb") as err:
            env, pass_fds = worker.pass_to_child()
            program = start_program(
                [
                    *(sys.executable, "program.py"),
                    *(f"--hosts={ps.address},{worker.address}", *flags),
                ],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": PACKAGES, "TF_CPP_MIN_LOG_LEVEL": "3", **env},
                stdout=err,
                stderr=err,
                pass_fds=pass_fds,
            )
            worker.release()
            code = program.wait(SECONDS)
        return code, (tmp_path / "err").read_text(encoding="utf-8")

    return run


@pytest.mark.once
@pytest.mark.parametrize(
    ("flags", "code", "line"),
    [
        ([], 138, "error: no connection within 1 s to /job:ps/task:0 at 127.0.0.1:"),
        (["--error=UserError"], 2, "error: the program's own words"),
        (["--error=PeerError"], 138, "error: the program's own words"),
        (["--no_flag"], 2, "error: Unknown command line flag 'no_flag'"),
    ],
)
def test_a_program_keeps_its_exit_codes(
    run: Callable[..., Any], flags: list[str], code: int, line: str
) -> None:
    found, written = run(*flags)
    # TensorFlow logs what it finds on the machine when it is loaded; 1.15 also what is deprecated.
    notes = ("I0000 ", "WARNING: All log messages before absl::InitializeLog()")
    notes += ("W", "Instructions for updating", "If using Keras")
    ours = [text for text in written.splitlines() if not text.startswith(notes)]
    assert (found, len(ours)) == (code, 1), written
    assert ours[0].startswith(line)


@pytest.mark.once
def test_other_errors_keep_their_traceback(run: Callable[..., Any]) -> None:
    code, written = run("--error=step")  # Not an error at all: it raises a TypeError.
    assert code == 1
    assert "TypeError" in written.splitlines()[-1]


def test_run_main_is_public() -> None:
    assert "run_main" in compat.__all__
