"""`experiments.launch`: programs that know nothing of this package, as the tasks of a cluster."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.errors import UserError
from experiments import launch
from experiments.launching import program
from tests.conftest import PACKAGES

if TYPE_CHECKING:
    from tests.experiments.conftest import Train

pytestmark = pytest.mark.once
SPEC = "cluster_spec"
# The flags of 2016 and a parameter server that joins for ever, without TensorFlow.
PROGRAM = """
    import argparse, json, os, pathlib, sys, time
    flags = argparse.ArgumentParser()
    flags.add_argument("--job_name")
    flags.add_argument("--task_index", type=int)
    flags.add_argument("--ps_hosts")
    flags.add_argument("--worker_hosts")
    flags.add_argument("--fail", type=int, default=0)
    flags.add_argument("--stay", action="store_true")
    flags = flags.parse_args()
    config = json.loads(os.environ["TF_CONFIG"])
    assert config["task"] == {"type": flags.job_name, "index": flags.task_index}
    hosts = {"ps": flags.ps_hosts.split(","), "worker": flags.worker_hosts.split(",")}
    assert config["cluster"] == hosts
    print(flags.job_name, flags.task_index, "process", os.getpid(), flush=True)
    serving = pathlib.Path("serving")
    if flags.job_name == "ps" or flags.stay:
        serving.touch()
        time.sleep(100)
    while not serving.exists():
        time.sleep(0.02)
    tried = pathlib.Path("tried")
    if flags.fail and flags.task_index == 1 and not tried.exists():
        tried.touch()
        sys.exit(flags.fail)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the program as a script and in a package."""
    package = tmp_path / "package"
    package.mkdir()
    for path in (tmp_path / "train.py", package / "train.py"):
        path.write_text(textwrap.dedent(PROGRAM), encoding="utf-8")
    old = "".join(f"flags.DEFINE_string('{n}', '', '')\n" for n in ("job_name", "task_id", SPEC))
    (package / "__main__.py").write_text(old, encoding="utf-8")
    (package / "__init__.py").write_text("print('imported by', __name__)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", PACKAGES)


def start(*argv: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "experiments.launch", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )


def runs(pid: int) -> bool:
    """Whether a process runs; a zombie that no init process collects does not."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], stdout=subprocess.PIPE)
    return done.stdout.strip()[:1] not in (b"", b"Z")


def launched(*argv: str, seconds: float = 150) -> tuple[int, list[str]]:
    """Returns the exit code of the launcher, and its lines without numbers of processes."""
    process = start(*argv)
    try:
        text = process.communicate(timeout=seconds)[0]
    finally:
        process.kill()  # By its id; does nothing once it has ended.
    return process.returncode, re.sub(r" process \d+", "", text).splitlines()


@pytest.mark.parametrize("words", ["train.py", "python -u train.py", "-m package.train"])
def test_each_task_learns_its_place_and_servers_are_stopped(words: str) -> None:
    code, lines = launched("--log_dir=logs/1", "--", *words.split())
    assert code == 0, lines
    assert lines[0] == (
        "launch: each task gets TF_CONFIG --job_name={job} --task_index={index} --ps_hosts={ps} "
        "--worker_hosts={worker}"
    )
    told = [line for line in lines[1:] if "imported by" not in line]
    assert sorted(told) == [
        "[ps 0] ps 0",
        "[worker 0] worker 0",
        "[worker 1] worker 1",
        "all others have ended; stopping ps 0",
    ]
    logs = {path.name: path.read_text(encoding="utf-8") for path in Path("logs", "1").iterdir()}
    assert sorted(logs) == ["ps-0.log", "worker-0.log", "worker-1.log"]
    assert re.search(r"^worker 1 process \d+\n$", logs["worker-1.log"], re.MULTILINE)


def test_a_command_that_is_not_python() -> None:
    code, lines = launched(
        *("--chief", "--num_ps=0", "--num_workers=1", "--evaluator", "--flags={job}:{index}"),
        *("--", "sh", "-c", 'echo "$0 $TF_CONFIG"'),
    )
    assert code == 0, lines
    told = {}
    for line in lines[1:]:
        name, _, text = line[1:].partition("] ")
        place, _, config = text.partition(" ")
        job, _, index = name.partition(" ")
        told[place] = json.loads(config)
        assert place == f"{job}:{index}"
        assert told[place]["task"] == {"type": job, "index": int(index)}
    assert sorted(told) == ["chief:0", "evaluator:0", "worker:0"]
    (cluster,) = {json.dumps(config["cluster"]) for config in told.values()}
    assert sorted(json.loads(cluster)) == ["chief", "worker"]


def test_first_failure_ends_all_with_its_exit_code() -> None:
    code, lines = launched("--", "train.py", "--fail=7")
    assert code == 7
    # Worker 0 may have ended by then, and what it printed may come after.
    stopping = re.compile(r"worker 1 failed with exit code 7; stopping ps 0(, worker 0)?")
    assert any(map(stopping.fullmatch, lines))


@pytest.mark.parametrize(("exit_code", "expected"), [(1, 0), (2, 2)])
def test_a_failed_task_is_started_again_unless_its_command_line_is_wrong(
    exit_code: int, expected: int
) -> None:
    code, lines = launched("--max_restarts=1", "--", "train.py", f"--fail={exit_code}")
    assert code == expected
    # Worker 0 may have ended by then, which the line says.
    again = "worker 1 failed with exit code 1; starting it again in 1 s (1 of 1)"
    assert any(line.startswith(again) for line in lines) == (exit_code == 1)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_survives_the_launcher(signum: signal.Signals) -> None:
    process = start("--", "train.py", "--stay")
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        pids = [int(line.split(" process ")[1]) for line in lines[1:]]
        process.send_signal(signum)
        process.communicate(timeout=100)
        killed = signum == signal.SIGKILL
        assert process.returncode == (-signum if killed else 128 + signum)
        until = time.monotonic() + 100
        while any(map(runs, pids)):
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()


def test_lines_of_a_dry_run_start_the_tasks() -> None:
    hosts = ("--ps_hosts=pc-01:2222", "--worker_hosts=pc-02:2222,pc-03:2222")
    code, lines = launched("--dry_run", *hosts, "--", "train.py", "--fail=3")
    assert code == 0
    assert lines[::2] == [
        "# ps 0 at pc-01:2222",
        "# worker 0 at pc-02:2222",
        "# worker 1 at pc-03:2222",
    ]
    assert " CUDA_VISIBLE_DEVICES=-1 python train.py --fail=3 --job_name=ps " in lines[1]
    Path("serving").touch()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    found = []
    for line in lines[3::2]:
        done = subprocess.run(
            ["sh", "-c", line],
            env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE,
            timeout=150,
        )
        found.append((done.returncode, done.stdout.decode().split(" process")[0]))
    assert found == [(0, "worker 0"), (3, "worker 1")]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ("", r"no program was given; usage: python -m experiments\.launch \[options\] -- PROGRAM "),
        ("train.py", r"'train\.py' has no -- before the program; usage: .* -- PROGRAM "),
        ("--num_workers=2 train.py", r"'--num_workers=2 train\.py' has no -- before the program; "),
        ("--", r"no program was given; name it after --, as in -- python train\.py$"),
        ("-- none.py", r"program 'none\.py' is not a file; correct the path of the script$"),
        ("-- no-such-program", r"program 'no-such-program' was not found; give its path, "),
        ("--num_ps=-1 -- train.py", r"--num_ps=-1 is negative; use 0 or more$"),
        ("--num_workers=0 -- train.py", r"the cluster has no task that trains; add workers "),
        ("--num_workers=x -- train.py", r"argument --num_workers: invalid int value: 'x'; "),
        ("--num_workers=300 -- train.py", r"ps=1,worker=300 are 301 tasks, expected at most 200 "),
        ("--max_restarts=-1 -- train.py", r"--max_restarts=-1 is negative; use 0 or more$"),
        ("--flags=all -- train.py", r"--flags=all is unknown; use auto, none, hosts, or write "),
        ("--flags={id} -- train.py", r"task arguments have \{id\}, expected one of ps, worker, "),
        ("--log_dir=train.py -- train.py", r"--log_dir=train\.py cannot be written to \(File ex"),
        ("--ps_hosts=a:1 -- train.py", r"--ps_hosts names hosts, and tasks are started on this "),
        ("--dry_run --ps_hosts=a -- train.py", r".*'a'"),
        ("--dry_run --worker_hosts=a:1 --num_ps=1 -- train.py", r"--num_ps and lists of hosts "),
        ("--dry_run --worker_hosts=a:1 --chief -- train.py", r"--chief has no address beside "),
        ("--dry_run --log_dir=logs -- train.py", r"--log_dir has no effect with --dry_run=shell; "),
        ("--dry_run --max_restarts=1 -- train.py", r"--max_restarts has no effect with --dry_r"),
        ("-- python -m compat run --cluster ps=1 train.py", r"--cluster=ps=1 of `compat run` sta"),
    ],
)
def test_refusals(argv: str, sentence: str) -> None:
    with pytest.raises(UserError, match=f"^{sentence}"):
        launch.main(argv.split())
    assert not Path("logs").exists()


@pytest.mark.parametrize(
    ("choice", "words", "jobs", "arguments"),
    [
        ("none", ["train.py"], "ps worker", ""),
        ("hosts", ["ls"], "ps worker", "--job_name --task_index --ps_hosts --worker_hosts"),
        ("hosts", ["ls"], "chief worker", "--job_name --task_index --chief_hosts --worker_hosts"),
        ("auto", ["ls"], "ps worker", ""),
        ("auto", ["train.py"], "worker", "--job_name --task_index --worker_hosts"),
        ("auto", ["train.py", "--ps_hosts=a:1"], "ps", "--job_name --task_index"),
        ("auto", ["python", "-W", "error", "train.py"], "ps", "--job_name --task_index --ps_hosts"),
        ("auto", ["compat", "run", "train.py"], "ps", "--job_name --task_index --ps_hosts"),
        ("auto", ["-m", "compat", "run", "-m", "train"], "", "--job_name --task_index"),
        ("auto", ["-m", "no.such.module"], "ps worker", ""),
        ("auto", ["-m", "compat", "serve"], "ps worker", ""),
        ("auto", ["-m", "package"], "ps worker", "--job_name --task_id --cluster_spec"),
        ("auto", ["-c", "print()"], "ps worker", ""),
    ],
)
def test_what_is_added_to_the_arguments(
    choice: str, words: list[str], jobs: str, arguments: str
) -> None:
    command = program.command(["python", *words] if words[0] == "-c" else words)
    how = program.task_arguments(choice, command, jobs.split())
    assert [word.partition("=")[0] for word in how.arguments] == arguments.split()
    assert how.tf_config


@pytest.mark.cluster
def test_an_old_script() -> None:
    """It names its hosts, has another number of workers, and is of Python 2."""
    old = """
        import os
        import tensorflow as tf
        tf.app.flags.DEFINE_string("job_name", "", "'ps' or 'worker'")
        tf.app.flags.DEFINE_integer("task_index", 0, "index of the task")
        FLAGS = tf.app.flags.FLAGS
        cluster = tf.train.ClusterSpec({"ps": ["pc-01:2222"], "worker": ["pc-02:2222"]})
        server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)
        if FLAGS.job_name == "ps":
            server.join()
        with tf.device(tf.train.replica_device_setter(
                worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster)):
            step = tf.train.create_global_step()
            loss = tf.square(tf.Variable(5.0))
            train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
        supervisor = tf.train.Supervisor(is_chief=FLAGS.task_index == 0, global_step=step)
        with supervisor.prepare_or_wait_for_session(server.target) as session:
            for _ in range(20):
                session.run(train)
            print "below one:", session.run(loss) < 1.0
        print "forked:", "fork_server" in open("/proc/%d/cmdline" % os.getppid()).read()
        supervisor.stop()
    """
    Path("old.py").write_text(textwrap.dedent(old), encoding="utf-8")
    code, lines = launched("--", "python", "-m", "compat", "run", "old.py")
    assert code == 0, lines
    for index in (0, 1):
        assert {f"[worker {index}] {said}: True" for said in ("below one", "forked")} <= set(lines)
    assert lines[-1] == "all others have ended; stopping ps 0"


@pytest.mark.long
@pytest.mark.cluster
def test_an_experiment(train: Train) -> None:
    launcher = (sys.executable, "-m", "experiments.launch", "--num_workers=1", "--")
    training = train("--strategy=ps", "--max_steps=30", within=launcher).wait(
        280
    )  # MLflow may take 180.
    assert training.code == 0, training.out + training.err
    assert "[worker 0] done" in training.out.splitlines()
    assert (training.logdir / "complete.json").exists()
