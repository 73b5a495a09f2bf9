"""`experiments.sweep`: what it refuses, and a study that is killed and resumed."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import optuna
import pytest
import yaml
from tensorboard.plugins.hparams import plugin_data_pb2

from compat.errors import Stopped, UserError
from experiments import sweep
from experiments.evaluation.trials import Trials
from experiments.launching.side_by_side import Programs
from experiments.launching.signals import signals
from experiments.settings.space import Values
from tests.experiments.conftest import DEADLINE_SECS, PACKAGES, Training

pytestmark = pytest.mark.once
MNIST = "experiments.mnist"
CANCER = Path(__file__).parent / "programs" / "cancer.py"
# A run without TensorFlow: `x` is its value, in each of three evaluations, or how it ends.
SCRIPT = """
for word; do
  case $word in
    --x=*) x=${word#*=};;
    --logdir=*) logdir=${word#*=};;
  esac
done
case $x in
  2) echo 'error: invalid input'; echo more; exit 2;;
  15) kill -TERM $PPID; exec sleep 60;;
esac
for step in 1 2 3; do
  echo "{\\"step\\": $step, \\"loss\\": $x}" >> $logdir/evaluations.jsonl
done
if [ $x = 99 ]; then exec sleep 60; fi
"""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "the following arguments are required: --space; "),
        ("--space=hidde=4..8", "--space=hidde=4..8 has the unknown setting 'hidde'; give settings"),
        ("--space=hidden=4..8,hidden=1..2", "--space=.* has hidden twice; leave one of them out"),
        ("--space=hidden=0..8", "--hidden=0 is too small; give 1 or more"),
        ("--space=hidden=1..many", "--hidden=many is not an integer; give an integer, such as 16"),
        ("--space=hidden=8..4", "--space: hidden=8..4 is empty; give the lower end first"),
        ("--space=hidden=4..8:lin", "--space: hidden=4..8:lin has the scale 'lin'; give log"),
        ("--space=weight_decay=0..1:log", "--space: .* has a lower end without a logarithm; give"),
        ("--space=hidden=8", r"--space: hidden=8 is not a range or different choices; give LOW"),
        ("--space=optimizer=adam|lion", "--optimizer=lion is unknown; give one of sgd, "),
        ("--space=logdir=a|b", r"--space=.* has logdir, which no sweep varies; leave it out"),
        ("--space=", r"--space= cannot be read \(No such file or directory\)"),
        ("--space=space.yaml", r"--space=space.yaml has the unknown setting 'hidde'"),
        ("--space=hidden=4..8 --trials=0", "--trials=0 is too small; give 1 or more"),
        ("--space=hidden=4..8 --jobs=999", "--jobs=999 is out of range; give 1 to "),
        ("--space=hidden=4..8 --study=a/b", "--study=a/b is not a name; give letters, digits"),
    ],
)
def test_what_is_wrong_takes_one_line(
    words: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "space.yaml").write_text("learning_rate: 0.1..1\nhidde: 4..8\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="^" + sentence):
        sweep.main([str(CANCER), *words.split()])
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("program", "words", "sentence"),
    [
        ("nowhere.py", "", "program nowhere.py is not a file; name a Python script, or a module "),
        ("json", "", "program json defines 0 subclasses of Experiment, expected one; name a "),
        (MNIST, "--storage=no://x", r"Optuna's storage no://x cannot be opened \(.*\); "),
        (MNIST, "-- --batch_size=3", "--batch_size=3 is in --space, too; leave it out"),
        (MNIST, "-- --logdir=a", "--logdir=a is of a single run, and a sweep has many; "),
        (MNIST, "-- --epoch=3", "Unknown command line flag 'epoch'"),
        (MNIST, "-- a", "argument 'a' is not a flag; flags look like --name=value"),
    ],
)
def test_wrong_flags_start_nothing(program: str, words: str, sentence: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "experiments.sweep", program, "--space=batch_size=4..8"]
    done = subprocess.run(
        [*command, *words.split()],
        cwd=tmp_path,
        env=dict(os.environ, PYTHONPATH=PACKAGES),
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(f"error: {sentence}.*\n", done.stderr), done.stderr
    assert not (tmp_path / "runs").exists()


def test_without_optuna_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['optuna'] = None\n"
        "from experiments import sweep; sweep.main(['experiments.mnist', '--space=hidden=1..2'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, timeout=150
    )
    last = done.stderr.splitlines()[-1]
    assert "Optuna is not installed for " in last
    assert last.endswith("run `python -m pip install 'compat-experiments[sweep]'`")


def run_trials(
    folder: Path, xs: list[int], jobs: int = 1, space: dict[str, Values] | None = None
) -> Any:
    """Runs a trial for each value of x, or nine of another space; returns the study."""
    (folder / "run.sh").write_text(SCRIPT)
    study = optuna.create_study(
        direction="minimize", pruner=optuna.pruners.MedianPruner(n_startup_trials=1)
    )
    for x in xs:
        study.enqueue_trial({"x": x})
    recorded: list[tuple[int, float]] = []
    trials = Trials(
        optuna,
        study,
        space or {"x": Values("1..99", low=1, high=99)},
        ["/bin/sh", str(folder / "run.sh")],
        str(folder),
        "loss",
        "min",
        lambda number, best: recorded.append((number, best)),
    )
    with signals() as stop:
        try:
            with Programs(jobs) as programs, stop.deferred():
                trials.run(len(xs) or 9, jobs, programs, stop)
        finally:
            study.recorded = recorded
            study.counted = trials._count()
            run_trials.study = study  # type: ignore[attr-defined]
    return study


def states(study: Any) -> list[str]:
    return [trial.state.name for trial in study.trials]


def test_trial_that_is_behind_is_pruned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = run_trials(tmp_path, [7, 99, 5, 2])
    assert states(study) == ["COMPLETE", "PRUNED", "COMPLETE", "FAIL"]
    assert study.recorded == [(1, 7.0), (3, 5.0)]
    lines = re.sub("after . eval", "after # eval", capsys.readouterr().out).splitlines()
    assert lines == [
        "trial-0: --x=7",
        "trial-0: loss 7 at step 1, the best so far",
        "trial-1: --x=99",
        "trial-1: pruned after # evaluations",
        "trial-2: --x=5",
        "trial-2: loss 5 at step 1, the best so far",
        "trial-3: --x=2",
        "trial-3: failed with exit code 2 (invalid input)",
    ]
    assert (tmp_path / "trial-3" / "output.log").read_text() == "error: invalid input\nmore\n"


def test_a_space_of_few_combinations_is_tried_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    space = {"x": Values("3|5|4", (3, 5, 4)), "y": Values("1..2", low=1, high=2)}
    study = run_trials(tmp_path, [], space=space)
    tried = [(trial.params["x"], trial.params["y"]) for trial in study.trials]
    assert tried == [(3, 1), (3, 2), (5, 1), (5, 2), (4, 1), (4, 2)]
    # Those that are behind end by themselves, most of them before they can be pruned.
    assert set(states(study)) <= {"COMPLETE", "PRUNED"}
    first, *_ = capsys.readouterr().out.splitlines()
    assert first == "the space has 6 combinations, so there are 6 trials"


def test_invalid_input_of_the_first_run_ends_the_sweep(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="^invalid input$"):
        run_trials(tmp_path, [2, 5])


def test_jobs_run_at_the_same_time_and_are_resumed_after_a_stop(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        run_trials(tmp_path, [99, 15, 5], jobs=2)
    study = run_trials.study  # type: ignore[attr-defined]
    assert study.counted == 0
    assert states(study) == ["FAIL", "FAIL", "WAITING", "WAITING", "WAITING"]
    waiting = [trial.user_attrs.get("folder") for trial in study.trials[2:]]
    assert waiting == [None, "trial-0", "trial-1"]


@pytest.fixture(scope="module")
def begin(start_program: Any, page: Any) -> Iterator[Callable[..., Training]]:
    """Starts the command of the page, with more flags for its runs, in a folder."""
    started: list[Training] = []

    def start(folder: Path, *flags: str) -> Training:
        argv = [sys.executable, "-m", "experiments.sweep", *page("sweeps.md").flags, *flags]
        env = {"TF_CPP_MIN_LOG_LEVEL": "3"}
        logdir = folder / "runs" / "digits"
        started.append(Training(argv, folder, logdir, env, start_program))
        return started[-1]

    yield start
    for training in started:
        training.end()


@pytest.fixture(scope="module")
def study(begin: Any, tmp_path_factory: pytest.TempPathFactory) -> Training:
    """The command of the page, when it has ended."""
    return begin(tmp_path_factory.mktemp("sweep")).wait()


@pytest.mark.long
def test_output_is_that_of_the_page(study: Training, page: Any) -> None:
    assert (study.code, study.err) == (0, "")
    # Which of the two is better is a matter of chance.
    shown = re.sub(r"(at step \d+)$", r"\1, the best so far", study.out, flags=re.MULTILINE)
    page("sweeps.md").assert_shows(shown)


@pytest.mark.long
def test_example_of_the_help_runs(tmp_path: Path, start_program: Any, empty_store: Path) -> None:
    (tmp_path / empty_store.name).write_bytes(empty_store.read_bytes())
    found = re.search(r"-m (experiments\.sweep (?:.*\\\n)*.*)\n", str(sweep.__doc__))
    assert found is not None
    words = shlex.split(found[1].replace("\\\n", "").replace("--trials=20", "--trials=1"))
    assert words[-1] == "--max_steps=500"
    argv = [sys.executable, "-m", *words[:-1], "--max_steps=5", "--dataset=digits"]
    env = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = Training(argv, tmp_path, None, env, start_program).wait()
    assert (done.code, done.err) == (0, "")
    assert re.search(
        r"(?m)^best: validation/accuracy 0\.\d+, runs/mnist-sweep-.*/trial-0$", done.out
    )


@pytest.mark.long
def test_best_command_is_of_the_best_run(study: Training) -> None:
    folder, command = re.search("^best: .*, (runs/.*)\n(.*)", study.out, re.M).groups()  # type: ignore[union-attr]
    settings = yaml.safe_load((study.folder / folder / "settings.yaml").read_text())
    for word in shlex.split(command)[-2:]:
        name, value = word[2:].split("=")
        assert settings[name] == type(settings[name])(value)


@pytest.mark.long
def test_study_has_its_trials_in_mlflow_and_tensorboard(study: Training, record: Any) -> None:
    recorded = record(study.logdir)
    statuses = dict(recorded.select("select name, status from runs"))
    assert statuses == dict.fromkeys(["digits", "trial-0", "trial-1"], "FINISHED")
    ((parent,),) = recorded.select("select run_uuid from runs where name = 'digits'")
    query = "select value from tags where key = 'mlflow.parentRunId'"
    assert recorded.select(query) == [(parent,)] * 2
    best = f"select max(step) from metrics where run_uuid = '{parent}'"
    assert recorded.select(best) == [(2,)]
    found = optuna.load_study(study_name="digits", storage=f"sqlite:///{study.logdir}/optuna.db")
    assert states(found) == ["COMPLETE", "COMPLETE"]
    for trial in found.trials:
        events = record(study.logdir / f"trial-{trial.number}").events
        events = [v for e in events for v in e.summary.value if "session_start" in v.tag]
        content = events[0].metadata.plugin_data.content
        shown = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info.hparams
        for name, value in trial.params.items():
            assert shown[name].number_value == value


@pytest.mark.slow
def test_killed_sweep_resumes_its_run(begin: Any, tmp_path: Path, record: Any) -> None:
    flags = ["--max_steps=3000"]
    killed, deadline = begin(tmp_path, *flags), time.monotonic() + DEADLINE_SECS
    evaluations = killed.logdir / "trial-0" / "evaluations.jsonl"
    while not (evaluations.exists() and evaluations.read_text().count("\n")):
        assert time.monotonic() < deadline, killed.out + killed.err
        time.sleep(0.01)
    killed.send(signal.SIGKILL).wait()
    before = killed.out
    while killed.offspring("--run_name=trial-0"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    resumed = begin(tmp_path, *flags).wait()
    assert (resumed.code, resumed.err) == (0, "")
    assert resumed.out.startswith(f"trial-0: interrupted; its run resumes\n{before}trial-0: ")
    log = (resumed.logdir / "trial-0" / "console.log").read_text()
    assert re.search("^resuming from step [1-9][0-9]*00 in ", log, re.MULTILINE)
    statuses = dict(record(resumed.logdir).select("select name, status from runs"))
    assert statuses == dict.fromkeys(["digits", "trial-0", "trial-2"], "FINISHED")
    storage = f"sqlite:///{resumed.logdir}/optuna.db"
    found = optuna.load_study(study_name="digits", storage=storage)
    assert states(found) == ["FAIL", "COMPLETE", "COMPLETE"]
    assert found.trials[0].params == found.trials[1].params
