r"""Searches for the best settings of an experiment with Optuna; each trial is a run.

    python -m experiments.sweep experiments.mnist --trials=20 \
        --space='learning_rate=1e-4..1e-1:log,batch_size=20..200,optimizer=adam|sgd' \
        -- --max_steps=500
    python -m experiments.sweep experiments.mnist --space=space.yaml --jobs=2

The program may be a file of your own, and space.yaml has lines such as 'batch_size: 20..200'. Flags
after -- are for all runs. A trial's value is the best that its evaluations have for the
experiment's `monitor`. Optuna's median rule stops a run that is behind the others. The folder
runs/STUDY has a log folder per trial and Optuna's storage. The same command with --study=STUDY
resumes a sweep.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import time
from typing import Any, Mapping, Sequence

from absl import flags

from compat.errors import Parser, Stopped, UserError
from compat.processes.command import run as run_command
from compat.processes.exit_codes import parse_flags
from compat.tracking import (
    FAILED,
    FINISHED,
    KILLED,
    Tracker,
    redacted_text,
    store_uri,
    tracking_command,
)
from compat.tracking.files import lock, writing_to
from compat.tracking.mlflow import run_id
from compat.tracking.mlflow.stores import is_given
from experiments.evaluation.trials import Trials, flags_of
from experiments.export.loading import experiment_of
from experiments.launching.side_by_side import Programs
from experiments.launching.signals import signals
from experiments.settings.flags import define_flags
from experiments.settings.space import read_space
from experiments.training.main import read_flags

# Flags of a single run or task, which a sweep refuses.
_OF_A_RUN = ("logdir", "run_name", "parent_run", "run_token", "print_config", "job_name")


def main(argv: Sequence[str]) -> int:
    """Runs a command line; returns the exit code, 0 if at least one trial is complete."""
    cut = argv.index("--") if "--" in argv else len(argv)
    options, given = parser().parse_args(argv[:cut]), list(argv[cut + 1 :])
    cores = os.cpu_count() or 1
    if options.trials < 1:
        raise UserError(f"--trials={options.trials} is too small; give 1 or more")
    if not 1 <= options.jobs <= cores:
        raise UserError(f"--jobs={options.jobs} is out of range; give 1 to {cores}, the cores")
    if options.study is not None and not re.fullmatch(r"\w[\w.-]{0,199}", options.study):
        raise UserError(f"--study={options.study} is not a name; give letters, digits, -, _ and .")
    optuna = _optuna()
    experiment = experiment_of(options.program)
    space = read_space(options.space, experiment.Settings)
    given, settings = _flags_of_runs(experiment, options.program, given, space)
    study = options.study or time.strftime(f"{experiment.name()}-sweep-%Y%m%d-%H%M%S")
    folder = os.path.abspath(os.path.join("runs", study))
    storage = options.storage or f"sqlite:///{os.path.join(folder, 'optuna.db')}"
    what = {name: values.text for name, values in space.items()}
    what.update(program=options.program, flags=_shown(given))
    if options.storage is None:
        with writing_to(folder):
            pass
    opened = _open_study(optuna, experiment.mode, study, storage, what)
    with writing_to(folder):
        busy = f"study {study} is run by another process; end that one, or give another --study"
        running = lock(os.path.join(folder, "sweep.lock"), busy, patience=2.0)
    with running, signals() as stop:
        tracker = Tracker(
            folder,
            tracking_uri=settings.tracking_uri,
            experiment_name=settings.experiment_name,
            run_name=study,
        )
        status = FAILED
        try:
            tracker.params(what)
            own = _own_flags(folder, settings.tracking_uri)
            # Jobs share the cores. Clusters get no share: with one thread, their tasks were seen to
            # wait for each other without end.
            if (
                options.jobs > 1
                and settings.strategy == "local"
                and "intra_op_threads" not in space
            ):
                own.append(f"--intra_op_threads={cores // options.jobs}")
            trials = Trials(
                optuna,
                opened,
                space,
                [*_python(options.program), *own, *given],
                folder,
                experiment.monitor,
                experiment.mode,
                lambda number, best: tracker.scalars(number, {experiment.monitor: best}),
            )
            with Programs(options.jobs) as programs, stop.deferred():
                trials.run(options.trials, options.jobs, programs, stop)
            status = FINISHED
        except Stopped:
            status = KILLED
            print(f"stopped; the same command with --study={study} resumes", flush=True)
            raise
        finally:
            tracker.close(status)
        print(f"TensorBoard:  tensorboard --logdir {os.path.relpath(folder)}")
        print(f"MLflow:       {tracking_command(folder, settings.tracking_uri)}")
        shown = options.storage or f"sqlite:///{os.path.relpath(folder)}/optuna.db"
        print(f"Optuna:       study {study} in {redacted_text(shown)}")
        return _summarize(trials, options.program, given)


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the arguments before `--`."""
    made = Parser(
        prog="python -m experiments.sweep",
        usage="python -m experiments.sweep PROGRAM --space=SPACE [options] -- [flags of PROGRAM]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = made.add_argument
    add("program", metavar="PROGRAM", help="a module such as experiments.mnist, or a script")
    add(
        "--space",
        required=True,
        help="settings and their values, as in learning_rate=1e-4..1e-1:log,batch_size=20..200,"
        "optimizer=adam|sgd; or a YAML file of lines such as 'batch_size: 20..200'",
    )
    add("--trials", type=int, default=20, metavar="N", help="runs of the study (default: 20)")
    add("--jobs", type=int, default=1, metavar="N", help="runs at the same time (default: 1)")
    add("--study", metavar="NAME", help="default: the experiment's name, date and time")
    add("--storage", metavar="URI", help="Optuna's (default: SQLite in runs/STUDY/optuna.db)")
    return made


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise UserError(
            f"Optuna is not installed for {sys.executable}; run "
            "`python -m pip install 'compat-experiments[sweep]'`"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _flags_of_runs(experiment: Any, program: str, given: Sequence[str], space: Any) -> Any:
    """Returns the flags that all runs of a sweep share, and the settings of one run as a sample.

    The sample has one of the values of each setting in the space. Runs are compared by their
    evaluations, so --eval_in_chief is added, unless the flags start an evaluator.

    Raises:
      UserError: a flag is invalid, is in the space as well, or is of a single run or task, such as
        --logdir; or the flags or TF_CONFIG name a task.
    """
    values = flags.FLAGS
    define_flags(experiment.Settings, experiment.presets)
    rest = parse_flags([program, *given])[1:]
    if rest:
        raise UserError(f"argument {rest[0]!r} is not a flag; flags look like --name=value")
    for name in (*space, *_OF_A_RUN):
        if values[name].present:
            why = "in --space, too" if name in space else "of a single run, and a sweep has many"
            raise UserError(f"--{name}={values[name].value} is {why}; leave it out")
    own = [] if values.evaluator else ["--eval_in_chief"]
    sample = {name: values.first for name, values in space.items()}
    parse_flags([program, *own, *flags_of(sample)])
    settings, cluster, _ = read_flags(experiment, values)
    if cluster is not None:
        raise UserError(
            "the flags or TF_CONFIG name a task, and a sweep starts whole runs; unset it"
        )
    return [*own, *given], settings


def _open_study(optuna: Any, mode: str, name: str, storage: str, what: Mapping[str, str]) -> Any:
    """Returns the study `name` in Optuna's storage, which is created if it does not exist.

    `what` holds the program, its flags and the values to search. Raises a `UserError` if the study
    was begun with others, or if the storage cannot be opened.
    """
    direction = "maximize" if mode == "max" else "minimize"
    try:
        study = optuna.create_study(
            study_name=name, storage=storage, direction=direction, load_if_exists=True
        )
        before = study.user_attrs.get("sweep", what)
        study.set_user_attr("sweep", before)
    except Exception as error:  # SQLAlchemy, its drivers and Optuna have no common base.
        reason = " ".join(redacted_text(str(error)).split())[:160]
        raise UserError(
            f"Optuna's storage {redacted_text(storage)} cannot be opened ({reason}); correct "
            "--storage, or leave it out"
        ) from error
    for key in (*before, *what):
        if before.get(key) != what.get(key):
            raise UserError(
                f"--study={name} was begun with {key}={before.get(key, '')}, and not with "
                f"{what.get(key, 'no values')}; repeat its command, or give another --study"
            )
    return study


def _own_flags(folder: str, tracking_uri: str | None) -> list[str]:
    """Returns flags that make the runs children of the study's run in MLflow."""
    parent = run_id.wait(folder)
    if parent is None:
        print("MLflow does not answer; the runs have no parent run", flush=True)
    own = {} if parent is None else {"parent_run": parent}
    # A URI that was given may have a password in it; the runs find it themselves.
    if not is_given(tracking_uri):
        own["tracking_uri"] = store_uri(None, folder)
    return flags_of(own)


def _python(program: str) -> list[str]:
    return [sys.executable, *([program] if os.path.isfile(program) else ["-m", program])]


def _shown(words: Sequence[str]) -> str:
    return redacted_text(" ".join(map(shlex.quote, words)))


def _summarize(trials: Trials, program: str, given: Sequence[str]) -> int:
    """Prints the best trial and its command line; returns the exit code."""
    best = trials.best()
    if best is None:
        print("no trial is complete; output.log in the folder of each says why")
        return 1
    name = trials.name(best)
    print(f"best: {trials.monitor} {best.value:.4g}, {os.path.relpath(trials.logdir(name))}")
    words = ["python", *_python(program)[1:], *given, *flags_of(best.params)]
    print(_shown(words))
    return 0


if __name__ == "__main__":
    run_command(lambda: main(sys.argv[1:]))
