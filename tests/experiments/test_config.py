"""The settings of a training, and that the command line has them all."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from absl import flags

from compat.cluster.environment import check_agreement
from compat.cluster.spec import ClusterSpec, Task
from compat.errors import UserError
from experiments import Experiment
from experiments.launching import devices, missing_task
from experiments.mnist import MNIST
from experiments.settings.files import changes, write_settings
from experiments.settings.flags import define_flags, settings_from_flags
from experiments.settings.place import check_evaluation, is_on_default_ports, place_from_flags
from experiments.settings.setting import PROCESS_FLAGS

Settings = MNIST.Settings

WRONG = [
    ("batch_size", 0, "--batch_size=0 is too small; give 1 or more"),
    ("batch_size", -100, "--batch_size=-100 is too small; give 1 or more"),
    ("epochs", 0, "--epochs=0 is too small; give 1 or more"),
    ("max_steps", 0, "--max_steps=0 is too small; give 1 or more"),
    ("steps_per_loop", -1, "--steps_per_loop=-1 is too small; give 0 or more"),
    ("log_every", 0, "--log_every=0 is too small; give 1 or more"),
    ("summary_every", -1, "--summary_every=-1 is too small; give 0 or more"),
    ("eval_every", -1, "--eval_every=-1 is too small; give 0 or more"),
    ("checkpoint_every", 0, "--checkpoint_every=0 is too small; give 1 or more"),
    ("early_stopping_patience", -1, "--early_stopping_patience=-1 is too small; give 0 or more"),
    ("seed", -1, "--seed=-1 is out of range; give 0 to 2147483647"),
    ("seed", 2**31, "--seed=2147483648 is out of range; give 0 to 2147483647"),
    ("learning_rate", 0.0, "--learning_rate=0.0 is not a positive number; give one, such as 0.1"),
    ("learning_rate", math.nan, "--learning_rate=nan is not a positive number"),
    ("clip_norm", 1e300, "--clip_norm=1e+300 is too large; give 3.4e+38 or less, which float32"),
    ("learning_rate", 1e-300, "--learning_rate=1e-300 is too small; give 0 or 1.2e-38 or more"),
    ("learning_rate", math.inf, "--learning_rate=inf is not a positive number"),
    ("rendezvous_timeout", -1.0, "--rendezvous_timeout=-1.0 is not a positive number"),
]
WRONG += [
    (name, value, f"--{name}={shown}")
    for name, longest in (("experiment_name", 256), ("run_name", 250))
    for value, shown in [
        *[
            (path, f"{path} has '..' in it")
            for path in ("..", "../a", "a/..", "/a/../b", "a\\..\\b")
        ],
        *[("", " is empty; give a name"), (" ", "  is empty"), ("\u3000", "\\u3000 is empty")],
        *[("a\nb", "a\\nb is not plain text"), ("a\x1b[2J", "a\\x1b[2J is not plain text")],
        *[("a\udcff", "a\\udcff is not plain text"), ("a\u2028b", "a\\u2028b is not plain text")],
        (
            "a" * (longest + 1),
            "a" * 60 + f"... has {longest + 1} characters; give {longest} or fewer",
        ),
    ]
]
WRONG += [
    ("run_name", path, f"--run_name={path} is an absolute path; give a name")
    for path in ("/", "/tmp/a", "\\a", "C:\\a", "c:/a")
]
NAMES = [
    *[("experiment_name", name) for name in ("/Users/me@example.org/exp", "C:/a", "a" * 256)],
    *[("run_name", name) for name in ("lr: 0.1", "a/b", "a..b", "...", "C:", "größer", "a" * 250)],
]


@pytest.mark.parametrize(("name", "value"), NAMES)
def test_names_that_mlflow_takes_are_taken(name: str, value: str) -> None:
    settings: dict[str, Any] = {name: value}
    assert Settings(**settings).params()[name] == value


@pytest.mark.parametrize(("name", "value", "sentence"), WRONG)
def test_wrong_values_are_refused(name: str, value: Any, sentence: str) -> None:
    settings = {name: value}
    with pytest.raises(UserError) as caught:
        Settings(**settings)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().epochs = 3  # type: ignore[misc]


# What a local cluster consists of, which is a tag; and what is new each time.
UNRECORDED = ["strategy", "num_ps", "num_workers", "max_restarts", "run_token", "evaluator"]
UNRECORDED += ["profile_steps"]


def test_params_are_all_settings_but_what_is_new_each_time() -> None:
    params = Settings(max_steps=7, run_token="x").params()
    names = [field.name for field in dataclasses.fields(Settings)]
    assert list(params) == [name for name in names if name not in UNRECORDED]
    assert params["max_steps"] == 7
    assert params["run_name"] == "none"
    assert params["sync"] is False


@pytest.fixture(scope="module")
def defined() -> flags.FlagValues:
    """The flags of the program."""
    own = flags.FlagValues()
    define_flags(Settings, MNIST.presets, values=own)
    return own


@pytest.fixture
def parse(defined: flags.FlagValues) -> Any:
    def parse(*argv: str) -> flags.FlagValues:
        defined.unparse_flags()
        for name in defined:
            defined[name].unparse()
        defined(["mnist", *argv])
        return defined

    return parse


def test_every_setting_has_a_flag_with_its_default(parse: Any) -> None:
    config = settings_from_flags(parse("--logdir=/logs"), Settings)
    assert config == Settings(logdir="/logs")


def test_every_flag_is_a_setting_or_says_where_it_runs(defined: flags.FlagValues) -> None:
    assert set(defined) - PROCESS_FLAGS == {field.name for field in dataclasses.fields(Settings)}


def test_flags_become_settings(parse: Any) -> None:
    flags = ("--runtime=legacy", "--sync", "--learning_rate=0.5", "--max_steps=3", "--logdir=/a")
    config = settings_from_flags(parse(*flags), Settings)
    assert config == Settings(
        runtime="legacy", sync=True, learning_rate=0.5, max_steps=3, logdir="/a"
    )


def resolved(values: flags.FlagValues) -> Any:
    return settings_from_flags(values, Settings).resolved("mnist")


def test_log_folder_is_absolute(parse: Any, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolved(parse("--logdir=logs/1")).logdir == str(tmp_path / "logs" / "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolved(parse("--logdir=~/a")).logdir == str(tmp_path / "a")


def test_log_folder_has_the_time_in_its_name(parse: Any, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path(resolved(parse()).logdir)
    assert folder.parent == tmp_path / "runs"
    assert len(folder.name) == len("mnist-20161231-235959")


HOSTS = ("--ps_hosts=a:1", "--worker_hosts=b:1,b:2")


def test_no_place_without_a_cluster(parse: Any) -> None:
    assert place_from_flags(parse(), None) == (None, None)
    assert place_from_flags(parse("--strategy=ps", "--num_ps=2"), None) == (None, None)


@pytest.mark.parametrize("names", [("ps_hosts", "worker_hosts"), ("parameter_servers", "workers")])
def test_place_of_the_card(parse: Any, names: Any) -> None:
    ps, worker = names
    argv = (f"--{ps}=a:1", f"--{worker}=b:1,b:2", "--job_name=worker", "--task_index=1")
    cluster, task = place_from_flags(parse("--strategy=ps", *argv), None)
    assert cluster.as_dict() == {"ps": ["a:1"], "worker": ["b:1", "b:2"]}
    assert (task.job, task.index) == ("worker", 1)


@pytest.mark.parametrize(
    ("argv", "hosts", "task"),
    [
        (["ps", "--job_name=worker"], {"ps": [2222], "worker": [2223]}, ("worker", 0)),
        (["ps", "--job_name=ps"], {"ps": [2222], "worker": [2223]}, ("ps", 0)),
        (
            ["ps", "--job_name=worker", "--num_workers=2", "--task_index=1"],
            {"ps": [2222], "worker": [2223, 2224]},
            ("worker", 1),
        ),
        (["multi_worker", "--job_name=worker"], {"worker": [2223]}, ("worker", 0)),
    ],
)
def test_a_task_without_hosts_is_one_of_this_machine(
    parse: Any, argv: list[str], hosts: dict[str, list[int]], task: tuple[str, int]
) -> None:
    values = parse(f"--strategy={argv[0]}", *argv[1:])
    cluster, found = place_from_flags(values, None)
    expected = {job: [f"127.0.0.1:{port}" for port in ports] for job, ports in hosts.items()}
    assert cluster.as_dict() == expected
    assert (found.job, found.index) == task
    assert is_on_default_ports(values, None)


def test_the_hosts_of_tf_config_are_taken_and_the_job_is_held_against_them(parse: Any) -> None:
    cluster = {"ps": ["a:1"], "worker": ["b:1"]}
    config = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}})
    for argv in (["--job_name=worker"], ["--job_name=worker", "--task_index=0"]):
        values = parse("--strategy=ps", *argv)
        assert place_from_flags(values, config) == (ClusterSpec(cluster), Task("worker", 0))
        assert not is_on_default_ports(values, config)
    for argv in (["--job_name=ps"], ["--job_name=worker", "--task_index=1"]):
        with pytest.raises(UserError, match="contradicts TF_CONFIG, whose task is worker 0"):
            place_from_flags(parse("--strategy=ps", *argv), config)


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--task_index=1"], "--task_index=1 is beyond the workers of this machine, 1 without hos"),
        (["--num_workers=0"], "--num_workers=0 is out of range; give 1 to 200"),
        (["--num_ps=2"], "--num_ps=2 describes a whole cluster that one command starts on this"),
        (["--task_index=-1"], "task index -1 of job 'worker' is not in the cluster"),
    ],
)
def test_wrong_places_on_this_machine(parse: Any, argv: list[str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        place_from_flags(parse("--strategy=ps", "--job_name=worker", *argv), None)


def test_the_command_of_another_task_is_this_one_with_another_place() -> None:
    argv = ["--job_name", "worker", "--strategy=ps", "-task_index=1", "--logdir=a b"]
    shown = missing_task.command("experiments.mnist", argv, Task("ps", 0))
    words = ["-m", "experiments.mnist", "--strategy=ps", "--logdir=a b"]
    assert shlex.split(shown) == [sys.executable, *words, "--job_name=ps", "--task_index=0"]


def test_flags_come_before_tf_config(parse: Any) -> None:
    values = parse("--strategy=ps", "--job_name=ps", *HOSTS)
    cluster, task = place_from_flags(values, '{"cluster": {}}')
    assert (task.job, task.index) == ("ps", 0)


@pytest.mark.parametrize(
    "flag",
    [
        *["job_name=ps", "task_index=1", "ps_hosts=a:1", "workers=a:1", "num_ps=2"],
        *["num_workers=2", "evaluator"],
    ],
)
def test_local_training_takes_no_flags_of_a_cluster(parse: Any, flag: str) -> None:
    with pytest.raises(UserError, match="describes a cluster; add --strategy=ps, or leave it out"):
        place_from_flags(parse(f"--{flag}"), None)


TF_CONFIG = json.dumps(
    {
        "cluster": {"ps": ["a:1"], "worker": ["b:1"], "evaluator": ["c:1"]},
        "task": {"type": "evaluator", "index": 0},
    }
)


@pytest.mark.parametrize(
    ("argv", "environment", "jobs"),
    [
        (["--job_name=evaluator"], None, []),
        (["--job_name=evaluator", "--strategy=ps"], None, []),
        (["--job_name=evaluator", "--strategy=ps", *HOSTS], None, ["ps", "worker"]),
        (["--job_name=evaluator", "--strategy=multi_worker", HOSTS[1]], None, ["worker"]),
        (["--strategy=ps"], TF_CONFIG, ["ps", "worker"]),
        (["--strategy=ps", "--job_name=evaluator"], TF_CONFIG, []),
    ],
)
def test_an_evaluator_needs_no_cluster(
    parse: Any, argv: list[str], environment: str | None, jobs: list[str]
) -> None:
    cluster, task = place_from_flags(parse(*argv), environment)
    assert (task.job, task.index) == ("evaluator", 0)
    assert cluster.jobs == jobs
    check_agreement(cluster, task, {} if environment is None else {"TF_CONFIG": environment})


PATIENCE = "--early_stopping_patience=2"


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--job_name=evaluator"], "--logdir is missing; an evaluator needs that of the chief"),
        (["--job_name=evaluator", PATIENCE], "--logdir is missing; an evaluator needs that of the"),
        ([PATIENCE, "--noeval_in_chief"], "--early_stopping_patience=2 counts evaluations, of whi"),
        ([PATIENCE], ""),
        (["--strategy=ps", PATIENCE], ""),
        ([PATIENCE, "--eval_in_chief"], ""),
        (["--strategy=ps", PATIENCE, "--evaluator"], ""),
        (["--job_name=evaluator", "--logdir=/logs", PATIENCE], ""),
    ],
)
def test_evaluations_need_somebody_to_make_them(parse: Any, argv: list[str], sentence: str) -> None:
    values = parse(*argv)
    _, task = place_from_flags(values, None)
    with pytest.raises(UserError, match=sentence) if sentence else contextlib.nullcontext():
        check_evaluation(values, task)


def test_who_evaluates_is_said_once(parse: Any) -> None:
    with pytest.raises(UserError, match="both say who evaluates the checkpoints; give one of them"):
        settings_from_flags(parse("--strategy=ps", "--evaluator", "--eval_in_chief"), Settings)


def test_number_of_an_evaluator(parse: Any) -> None:
    with pytest.raises(UserError, match="--task_index=-1 is negative; give 0 or more"):
        place_from_flags(parse("--job_name=evaluator", "--task_index=-1"), None)


def test_a_server_that_could_not_answer_is_refused() -> None:
    with pytest.raises(UserError, match="--inter_op_threads=1 leaves a server of the modern runt"):
        devices.configure_eager(Settings(inter_op_threads=1), alone=False)


def test_settings_that_a_resumed_run_changes_are_named(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert changes(Settings(), folder) == []
    write_settings(Settings(learning_rate=0.5, epochs=3), folder)
    assert changes(Settings(learning_rate=0.5, epochs=3, logdir=folder), folder) == []
    assert changes(Settings(learning_rate=0.1, epochs=3, run_name="b"), folder) == [
        "--learning_rate is 0.1, in the run so far it was 0.5",
        "--run_name is b, in the run so far it was None",
    ]


def test_what_an_experiment_lacks_is_an_error_of_the_user() -> None:
    class Wine(Experiment):
        pass

    wine = Wine(Wine.Settings())
    with pytest.raises(UserError, match=r"Wine has no data\(\); return a dict of splits"):
        wine.data()
    with pytest.raises(UserError, match=r"Wine has no loss\(\); return a scalar tensor"):
        wine.loss({}, training=True)
