from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest

from compat.cluster import ports
from compat.errors import UserError
from compat.processes.local_cluster import LocalCluster, visible_gpus
from experiments.launching import task_record
from experiments.launching.launcher import describe, launch_local

pytestmark = pytest.mark.once
DEADLINE_SECS = 120
ROOT = Path(ports.__file__).parents[2]

# A task of a cluster without TensorFlow: it serves, meets all others, and does as --then says.
TASK = """
import argparse, os, pathlib, socket, sys, time
from compat.cluster import ports
from compat.cluster.environment import cluster_from_hosts
from compat.cluster.spec import Task, all_tasks
from compat.cluster.liveness.monitor import Monitor, connection_checks

flags = argparse.ArgumentParser()
for name in ("strategy", "job_name", "task_index", "ps_hosts", "worker_hosts", "run_token", "then"):
    flags.add_argument("--" + name)
flags = flags.parse_args()
cluster = cluster_from_hosts(flags.ps_hosts, flags.worker_hosts)
me = Task(flags.job_name, int(flags.task_index))
address = cluster.task_address(me.job, me.index)
port = int(address.rpartition(":")[2])
time.sleep(0.2)  # As if importing TensorFlow: the port is kept for us meanwhile.
ports.release_inherited(port)
ports.check_free(address)
with socket.socket() as server:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # As TensorFlow's do.
    server.bind(("", port))
    server.listen()
    others = [task for task in all_tasks(cluster) if task != me]
    checks = connection_checks({task.name: cluster.address_of(task) for task in others})
    Monitor(checks, 60, lambda line: None).wait()
    pathlib.Path(f"{me.job}{me.index}").touch()
    while not all(pathlib.Path(f"{task.job}{task.index}").exists() for task in others):
        time.sleep(0.02)
print(flags.strategy, "gpu", os.environ.get("CUDA_VISIBLE_DEVICES"), "met", len(others))
if flags.then == me.name:
    sys.exit(9)
if flags.then != "end":
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes `python -m task` the program above, in a folder of its own, with a deadline."""

    def expire(signum: int, frame: Any) -> None:
        raise TimeoutError(f"{DEADLINE_SECS} s are over")

    (tmp_path / "task.py").write_text(TASK)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    before = signal.signal(signal.SIGALRM, expire)
    signal.alarm(DEADLINE_SECS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def test_a_whole_cluster(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose workers take the GPUs in turn."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4, GPU-ab")
    assert launch_local("task", ["--then=end"], 2, 3) == 0
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "[ps 0] ps gpu -1 met 4",
        "[ps 1] ps gpu -1 met 4",
        "[worker 0] ps gpu 4 met 4",
        "[worker 1] ps gpu GPU-ab met 4",
        "[worker 2] ps gpu 4 met 4",
    ]


def test_a_failing_task(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--then=/job:worker/task:1"]
    assert launch_local("task", argv, num_ps=1, num_workers=2, logdir=os.curdir) == 9
    stopped = "worker 1 failed with exit code 9; stopping ps 0, worker 0"
    assert stopped in capsys.readouterr().out.splitlines()
    started, ended = [], []
    for event in task_record.read(os.curdir):
        if event["event"] == "start":
            started.append(event["task"])
        else:
            ended.append((event["task"], event["code"]))
    assert started == ["ps 0", "worker 0", "worker 1"]
    assert ended[0] == ("worker 1", 9)
    assert sorted(ended[1:]) == [("ps 0", 143), ("worker 0", 143)]


def test_a_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "my folder" / "task-2.py"  # No module could have such a name.
    script.parent.mkdir()
    script.write_text(TASK)
    assert launch_local(script, ["--then=end"], num_ps=1, num_workers=1) == 0
    assert "[worker 0] ps gpu 7 met 1" in capsys.readouterr().out.splitlines()


def test_a_script_that_is_not_there() -> None:
    with pytest.raises(UserError, match=r"^program 'none\.py' is not a file; name a "):
        launch_local(Path("none.py"), [], num_ps=1, num_workers=1)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["package/program.py"], "PosixPath('{folder}/package/program.py')"),
        (["-m", "package.program"], "'package.program'"),
        (["-m", "package"], "'package'"),
        (["-c", "import package.program"], "UserError: a local cluster runs a program once per "),
    ],
)
def test_the_program_that_runs(tmp_path: Path, command: list[str], expected: str) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    code = "from experiments.launching import launcher\n"
    for name in ("program.py", "__main__.py"):
        (package / name).write_text(code + "print(repr(launcher.this_program()))\n")
    done = subprocess.run(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert expected.format(folder=tmp_path) in done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("limit", "gpus"), [("1,0", ["1", "0"]), ("2,-1,3", ["2"]), ("-1", []), ("", []), (None, None)]
)
def test_visible_gpus(tmp_path: Path, limit: str | None, gpus: list[str] | None) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'GPU 0: T4 (UUID: a)'\necho '  MIG'\necho 'GPU 1: T4'\n")
    smi.chmod(0o755)
    environment = {"PATH": str(tmp_path)}
    if limit is not None:
        environment["CUDA_VISIBLE_DEVICES"] = limit
    assert visible_gpus(environment) == (["0", "1"] if gpus is None else gpus)


def test_no_gpus_where_the_driver_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'GPU 0: lost'\nexit 9\n")
    smi.chmod(0o755)
    monkeypatch.setattr("compat.processes.local_cluster._GPU_FOLDER", tmp_path / "none")
    assert visible_gpus({"PATH": str(tmp_path)}) == []
    for bus in ("0000:3b:00.0", "0000:af:00.0"):
        (tmp_path / "none" / bus).mkdir(parents=True)
    assert visible_gpus({"PATH": "/none"}) == ["0", "1"]


def test_a_module_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert launch_local("no_such_module", [], num_ps=1, num_workers=1) == 1
    assert "No module named no_such_module" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("num_ps", "num_workers", "sentence"),
    [
        (0, 1, "--num_ps=0 is too small; use 1 or more"),
        (1, 0, "--num_workers=0 is too small; use 1 or more"),
        (1, -1, "--num_workers=-1 is too small; use 1 or more"),
    ],
)
def test_no_such_cluster(num_ps: int, num_workers: int, sentence: str) -> None:
    with pytest.raises(UserError, match=f"^{sentence}$"):
        launch_local("task", [], num_ps, num_workers)


def test_an_evaluator_is_beside_the_cluster() -> None:
    with LocalCluster({"ps": 1, "worker": 1}, inherit=True) as local:
        alone = describe("a.b", ["--x=1"], local)
        evaluator, *cluster = describe("a.b", ["--x=1"], local, evaluator=True)
        assert [command.name for command in cluster] == [command.name for command in alone]
        hosts = [f"--{job}_hosts={local.hosts[job][0]}" for job in ("ps", "worker")]
    assert evaluator.name == "evaluator 0"
    task = ["--strategy=ps", "--job_name=evaluator", "--task_index=0"]
    assert list(evaluator.argv[:-1]) == [sys.executable, "-m", "a.b", "--x=1", *task, *hosts]
    assert evaluator.pass_fds == ()
    assert evaluator.env["CUDA_VISIBLE_DEVICES"] == "-1"


def test_the_description_of_a_cluster() -> None:
    with LocalCluster({"ps": 1, "worker": 2}, inherit=True) as local:
        commands = describe("a.b", ["--x=1", "y"], local)
        (ps,), (first, second) = local.hosts["ps"], local.hosts["worker"]
        hosts = [f"--ps_hosts={ps}", f"--worker_hosts={first},{second}"]
        for command, job, index, address in zip(
            commands, ("ps", "worker", "worker"), (0, 0, 1), (ps, first, second)
        ):
            task = ["--strategy=ps", f"--job_name={job}", f"--task_index={index}"]
            assert command.name == f"{job} {index}"
            expected = (sys.executable, "-m", "a.b", "--x=1", "y", *task, *hosts)
            assert command.argv[:-1] == expected
            assert re.fullmatch("--run_token=[0-9a-f]{32}", command.argv[-1])
            assert command.argv[-1] == commands[0].argv[-1]
            (descriptor,) = command.pass_fds
            reserved = f"{address.rpartition(':')[2]}:{descriptor}"
            env = {"PYTHONUNBUFFERED": "1", "EXPERIMENTS_LAUNCHED": "1"}
            env["TF_CPP_MIN_LOG_LEVEL"] = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "3")
            gpu = {"CUDA_VISIBLE_DEVICES": "-1" if job == "ps" else "7"}
            assert command.env == {**env, **gpu, "COMPAT_RESERVED_PORTS": reserved}
    assert len(commands) == 3
