"""The command line: help, files of flags, and one line for whatever is wrong with it."""

from __future__ import annotations

import gzip
import json
import os
import runpy
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from compat.cluster.ports import reserve

pytestmark = pytest.mark.once
refusals = runpy.run_path(str(Path(__file__).with_name("programs") / "refusals.py"))["refusals"]
PS = "--ps_hosts=127.0.0.1:2222"
WORKERS = "--worker_hosts=127.0.0.1:2223,127.0.0.1:2224"
TASK = ["--strategy=ps", PS, WORKERS]
REPLICAS = ["--sync", "--replicas_to_aggregate=3"]
BACKUP = ["--dataset=digits", "--sync", "--replicas_to_aggregate=1"]


def complaint(training: Any, code: int = 2) -> str:
    """Returns the one line in which a command was refused, before it had made a file."""
    training.wait()
    assert training.err.startswith("error: "), training.err
    assert training.err.count("\n") == 1, training.err
    assert training.code == code
    assert sorted(os.listdir(training.folder)) == ["stderr", "stdout"]
    return str(training.err)


@pytest.mark.parametrize("flag", ["--help", "--help=all", "--helpfull", "--helpshort"])
def test_help(start: Any, flag: str) -> None:
    training = start(flag, env={"PYTHONPROFILEIMPORTTIME": "1"}, within=["env"]).wait()
    assert training.code == 0
    assert "python -m experiments.mnist --strategy=ps --num_ps=1 --num_workers=2" in training.out
    for name in ("strategy", "runtime", "epochs", "logdir"):
        assert f"--{name}" in training.out
    is_whole = flag in ("--help=all", "--helpfull")
    for name in ("--[no]sync", "--rendezvous_timeout", "--run_name"):
        assert (name in training.out) == is_whole
    if not is_whole:  # One screen: its own settings, then those that every experiment trains by.
        own, others = (training.out.index(f"\n  --{name}") for name in ("dataset", "epochs"))
        assert own < others
        assert len(training.out.splitlines()) <= 48
    imported = {line.split("|")[-1].strip().split(".")[0] for line in training.err.splitlines()}
    assert "absl" in imported
    assert not imported & {"tensorflow", "mlflow", "tensorboard", "sklearn"}


@pytest.mark.parametrize(
    ("program", "flag"),
    [("matpow", "cluster_spec"), ("shared_queue", "increments"), ("scaling", "modes")],
)
def test_help_lists_what_only_one_program_has(start: Any, program: str, flag: str) -> None:
    shown = start("--help", module=f"experiments.classics.{program}").wait()
    assert shown.code == 0
    assert f"  --{flag}" in shown.out


def tf_config(job: str, index: Any, **jobs: list[str]) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": jobs, "task": {"type": job, "index": index}})}


WRONG_FLAGS: list[tuple[list[str], str]] = [
    (["--nosuch=1"], "Unknown command line flag 'nosuch'; --help lists the flags"),
    (["--epochs=1.5"], "--epochs=1.5 is not an integer; --help lists the flags"),
    (["--task_index=a: b"], "--task_index=a: b is not an integer; --help lists the flags"),
    (["--learning_rate=fast"], "--learning_rate=fast is not a number; --help lists the flags"),
    (["--sync=maybe"], "--sync=maybe is not true or false; --help lists the flags"),
    (["--dataset=svhn"], "flag --dataset=svhn: value should be one of <mnist|"),
    (["--nosync=1"], "--nosync=1 does not take an argument; --help lists the flags"),
    (["--stderrthreshold=x"], "--stderrthreshold must be one of "),
    (["--logdir=a\udcff"], "--logdir=a\\udcff is not UTF-8; --help lists the flags"),
    (["--only_check_args"], "--only_check_args of absl would train nothing here; give --print"),
    (["--run_with_pdb"], "--run_with_pdb of absl would train nothing here; run it in a terminal"),
    (["--logdir"], "Missing value for flag --logdir; --help lists the flags"),
    (["--flagfile=/nonexistent"], "Unable to open flagfile"),
    (["train"], "argument 'train' is not a flag; flags look like --name=value"),
    (["--batch_size=0"], "--batch_size=0 is too small; give 1 or more"),
    (["--epochs=-1"], "--epochs=-1 is too small; give 1 or more"),
    (["--max_steps=-5"], "--max_steps=-5 is too small; give 1 or more"),
    (["--seed=-1"], "--seed=-1 is out of range; give 0 to 2147483647"),
    (["--learning_rate=-0.1"], "--learning_rate=-0.1 is not a positive number; give one"),
    (
        ["--epochs=2", "--max_steps=9"],
        "--epochs=2 and --max_steps=9 both say when to end; give one of them",
    ),
    (["--tracking_uri=./mlruns"], "tracking URI './mlruns' is not a store that MLflow can write"),
    (["--job_name=worker"], "--job_name=worker describes a cluster; add --strategy=ps"),
    (["--num_workers=2"], "--num_workers=2 describes a cluster; add --strategy=ps"),
    (["--strategy=ps", "--num_ps=0"], "--num_ps=0 is too small; use 1 or more"),
    ([*TASK, "--job_name=wrker"], "job 'wrker' is not in the cluster, which has ps, worker"),
    (
        [*TASK, "--job_name=worker", "--task_index=2"],
        "task index 2 of job 'worker' is not in the cluster; use 0, 1",
    ),
    ([*TASK, "--job_name=ps", "--task_index=-1"], "task index -1 of job 'ps' is not in the"),
    (TASK, "--job_name is missing beside --ps_hosts=127.0.0.1:2222; a task needs --job_name"),
    (["--strategy=ps", PS, "--job_name=ps"], "--worker_hosts is missing beside --job_name=ps"),
    (
        ["--strategy=ps", "--job_name=ps", PS, "--worker_hosts=127.0.0.1:2222"],
        "address '127.0.0.1:2222' is given to both /job:ps/task:0 and /job:worker/task:0; give",
    ),
    (
        ["--strategy=ps", "--job_name=ps", PS, "--worker_hosts=pc-02"],
        "/job:worker/task:0: address 'pc-02' has no port; write host:port",
    ),
    (
        ["--strategy=multi_worker", "--runtime=legacy"],
        "--strategy=multi_worker needs the modern runtime; what it does, --strategy=ps --sync",
    ),
    (["--strategy=multi_worker", "--sync"], "leave --sync and --replicas_to_aggregate out"),
    (["--strategy=multi_worker", PS], "--ps_hosts=127.0.0.1:2222 is of no use to --strategy="),
    (["--strategy=multi_worker", "--num_workers=0"], "--num_workers=0 is too small; use 1"),
    (["--communication_period=5"], "use --strategy=ps without --sync, or leave it out"),
    (["--algorithm=easgd"], "give --communication_period, such as 10, or leave it out"),
    (["--moving_rate=0.5"], "is of --algorithm=easgd; add that, or leave it out"),
    (["--profile_file=/nowhere/x"], "--profile_file=/nowhere/x cannot be written; name a file in"),
    (["--replicas_to_aggregate=2"], "--replicas_to_aggregate=2 says how many gradients make"),
]
WRONG_TF_CONFIGS: list[tuple[dict[str, str], str]] = [
    ({"TF_CONFIG": '{"cluster": '}, "TF_CONFIG: '{\"cluster\": ' is not valid JSON"),
    ({"TF_CONFIG": '{"cluster": {}}'}, "TF_CONFIG: the key 'task' is missing in"),
    (
        tf_config("worker", 1, ps=["a:1"], worker=["b:1"]),
        "TF_CONFIG: task index 1 of job 'worker' is not in the cluster; use 0",
    ),
    (tf_config("ps", "0", ps=["a:1"], worker=["b:1"]), "'index' is '0', expected a whole"),
    (tf_config("worker", 0, worker=["b:1"]), "the cluster of TF_CONFIG has no ps; add one"),
]


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "flags"
    file.write_text("--strategy=ps\n# a comment\n--dataset=digits\n--num_ps=-3\n")
    cases: list[tuple[list[str], dict[str, str], str]] = [
        *((["--dataset=digits", *flags], {}, sentence) for flags, sentence in WRONG_FLAGS),
        *((["--strategy=ps"], env, sentence) for env, sentence in WRONG_TF_CONFIGS),
        ([f"--flagfile={file}"], {}, "--num_ps=-3 is too small"),
        ([f"--flagfile={file}", "--num_ps=-4"], {}, "--num_ps=-4 is too small"),
    ]
    lines = refusals("experiments.mnist", [case[:2] for case in cases], tmp_path)
    for (flags, _, sentence), line in zip(cases, lines):
        assert sentence in line, flags


Case = Tuple[List[str], Dict[str, str], str]
NAMES = [
    "backup replicas on modern",
    "batch larger than the data set",
    "broken data",
    "data of somebody else",
    "log folder below a file",
    "log folder is a file",
    "no data and no network",
    "no peers",
    "port in use",
    "sync alone",
    "too many replicas",
]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: Any, runtimes: list[str]) -> Iterator[dict[str, Case]]:
    """What is known to be wrong only when TensorFlow is loaded: flags, environment, sentence."""
    file = tmp_path_factory.mktemp("file") / "file"
    file.touch()
    broken = tmp_path_factory.mktemp("broken")
    whole = gzip.compress(struct.pack(">IIII", 2051, 1, 28, 28) + bytes(784))
    (broken / "train-images-idx3-ubyte.gz").write_bytes(whole[:-9])
    other = tmp_path_factory.mktemp("other")
    (other / "train-images-idx3-ubyte.gz").write_bytes(whole)
    no_backups = (
        "--replicas_to_aggregate=1 is not available on the modern runtime, whose coordinator"
    )
    no_modern = "runtime 'modern' needs TensorFlow 2.4 or later, this is 1.15"
    with reserve() as closed, socket.socket() as listening:
        listening.bind(("", 0))
        listening.listen(1)
        taken = f"127.0.0.1:{listening.getsockname()[1]}"
        offline = dict.fromkeys(("http_proxy", "https_proxy"), f"http://{closed.address}")
        yield {
            "backup replicas on modern": (
                [*TASK, "--job_name=worker", *BACKUP, "--runtime=modern"],
                {},
                no_backups if "modern" in runtimes else no_modern,
            ),
            "batch larger than the data set": (
                ["--dataset=digits", "--batch_size=1298"],
                {},
                "--batch_size=1298 is more than the 1297 training examples; give fewer",
            ),
            "broken data": (
                ["--dataset=mnist", f"--data_dir={broken}"],
                offline,
                "train-images-idx3-ubyte.gz cannot be read",
            ),
            "data of somebody else": (
                ["--dataset=auto", f"--data_dir={other}"],
                offline,
                "train-images-idx3-ubyte.gz is not the published MNIST: the SHA-256 of its",
            ),
            "log folder below a file": (
                ["--dataset=digits", f"--logdir={file / 'log'}"],
                {},
                f"log folder {file / 'log'} cannot be written to (Not a directory); choose another",
            ),
            "log folder is a file": (
                ["--dataset=digits", f"--logdir={file}"],
                {},
                f"log folder {file} cannot be written to (Not a directory); choose another",
            ),
            "no data and no network": (
                ["--dataset=mnist"],
                offline,
                "name a folder that holds it with --data_dir, or use --dataset=digits",
            ),
            "no peers": (
                ["--dataset=digits", "--strategy=ps", "--job_name=worker", "--task_index=0"]
                + [f"--ps_hosts={closed.address}", WORKERS, "--rendezvous_timeout=1"],
                {},
                f"within 1 s to /job:ps/task:0 at {closed.address}: refused, start the task there",
            ),
            "port in use": (
                ["--strategy=ps", "--job_name=ps", f"--ps_hosts={taken}", WORKERS],
                {},
                f"{taken} is in use on this machine; stop the process or choose another port",
            ),
            "sync alone": (
                ["--dataset=digits", "--sync", "--runtime=legacy"],
                {},
                "--sync aggregates several workers; use it with --strategy=ps",
            ),
            "too many replicas": (
                [*TASK, "--job_name=worker", "--dataset=digits", "--runtime=legacy", *REPLICAS],
                {},
                "--replicas_to_aggregate=3 is more than there are workers; give 1 to 2, or leave",
            ),
        }


@pytest.fixture(scope="module")
def refused(start: Any, cases: dict[str, Case]) -> dict[str, Any]:
    """The commands, when they have ended; two at a time."""

    def run(name: str) -> Any:
        flags, env, _ = cases[name]
        return start(*flags, env=env).wait()

    with ThreadPoolExecutor(max_workers=2) as pool:
        return dict(zip(NAMES, pool.map(run, NAMES)))


@pytest.mark.parametrize("name", NAMES)
def test_wrong_circumstances_are_said_in_one_line(
    refused: dict[str, Any], cases: dict[str, Case], name: str
) -> None:
    _, _, sentence = cases[name]
    assert sentence in complaint(refused[name], code=138 if name == "no peers" else 2)
