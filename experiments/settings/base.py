"""The settings that every experiment has."""

from __future__ import annotations

import dataclasses
import functools
import re
import time
import unicodedata
from dataclasses import dataclass
from typing import Any

from compat.errors import UserError
from compat.tracking import experiment, redacted, store_uri
from compat.tracking.files import local_folder
from experiments.settings.setting import check_class, checked, prepare, setting, shortened
from experiments.settings.uncaught import show_in_one_line

ALLOW_NETWORK = (
    "Let tasks be on other machines: everyone who reaches their ports can run code there."
)
_MOST_THREADS = 10_000
# Lengths of the columns in MLflow's databases, from MLflow 1.30 on.
_LONGEST_NAMES = {"experiment_name": 256, "run_name": 250}
# Unicode's categories of control characters, of line ends, and of surrogates, which stand for
# bytes that are not text; no database stores those.
_NO_TEXT = {"Cc", "Cs", "Zl", "Zp"}
_TUNED = {"data", "model", "training"}  # Groups of the settings by which runs are compared.
_cluster = functools.partial(setting, group="cluster")
_training = functools.partial(setting, group="training")
_evaluation = functools.partial(setting, group="evaluation")
_recording = functools.partial(setting, group="recording")


@dataclass(frozen=True)
class Settings:
    """The settings of a run; the `Settings` of an experiment adds fields.

    A field is written once: it is a flag, an entry of --config, a parameter in MLflow and an
    HParam in TensorBoard. A subclass may give an inherited field, such as `epochs` here, another
    default:

        @dataclass(frozen=True)
        class Settings(Settings):
            hidden: int = setting(16, "Hidden units.", at_least=1)
            epochs: int = 5

    Values are checked and converted as those of flags are.

    Raises:
      UserError: a value is of another type, out of bounds, or contradicts another one; or a field
        has no help, an unsupported type, or a name that is taken.
    """

    strategy: str = _cluster(
        "local",
        "Processes of the run: this one alone; parameter servers (ps); or workers that make each "
        "update together (multi_worker).",
        choices=("local", "ps", "multi_worker"),
        recorded=False,
    )
    runtime: str = _cluster(
        "auto",
        "Runtime: graphs and sessions (legacy), ParameterServerStrategy (modern), or the latter "
        "where TensorFlow has it (auto).",
        choices=("auto", "legacy", "modern"),
    )
    sync: bool = _cluster(False, "Average all workers' gradients before each update.")
    replicas_to_aggregate: int = _cluster(
        0,
        "Gradients in an update of --sync, fewer than workers so as not to wait for the slowest "
        "(legacy); 0: one of each worker.",
        at_least=0,
    )
    num_ps: int = _cluster(1, "Parameter servers of a local cluster.", recorded=False)
    num_workers: int = _cluster(2, "Workers of a local cluster.", recorded=False)
    max_restarts: int = _cluster(3, "Restarts of each task of a local cluster.", recorded=False)
    shared_logdir: bool = _cluster(False, "Train only if all tasks see the same log folder.")
    rendezvous_timeout: float = _cluster(60.0, "Seconds to wait for other tasks.", above=0)
    run_token: str = _cluster("", "Text that only the tasks of this run have.", recorded=False)
    allow_network: bool = _cluster(False, ALLOW_NETWORK)
    inter_op_threads: int = _cluster(
        0, "Threads for separate operations; 0: one per core.", at_least=0, at_most=_MOST_THREADS
    )
    intra_op_threads: int = _cluster(
        0,
        "Threads within an operation; 0: a task's share of cores.",
        at_least=0,
        at_most=_MOST_THREADS,
    )
    gpu_memory_fraction: float | None = _cluster(
        None, "Share of each GPU's memory; by default it grows as needed.", above=0, at_most=1
    )
    log_device_placement: bool = _cluster(False, "Print the devices of variables and operations.")
    batch_size: int = setting(100, "Examples in an update.", at_least=1, group="data")
    optimizer: str = _training(
        "adam",
        "Optimizer; lazy_adam and rowwise_adagrad update only the batch's rows of a table.",
        choices=("sgd", "momentum", "adam", "adamw", "adagrad", "ftrl")
        + ("lazy_adam", "rowwise_adagrad"),
    )
    learning_rate: float = _training(0.001, "Learning rate.", above=0)
    schedule: str = _training(
        "constant",
        "Learning rate over the run: constant, or falling to 0 by a cosine.",
        choices=("constant", "cosine"),
    )
    warmup_steps: int = _training(
        0, "Updates in which the learning rate first rises from 0.", at_least=0
    )
    weight_decay: float = _training(
        0.0,
        "Multiple of a variable that is added to its gradient (L2); with adamw, the share of a "
        "variable that an update subtracts, times the learning rate.",
        at_least=0.0,
    )
    clip_norm: float = _training(
        0.0, "Largest norm of all gradients together; 0: no clipping.", at_least=0.0
    )
    precision: str = _training(
        "float32",
        "Type of the numbers in matrix products and convolutions; variables, updates and sums stay "
        "float32. bfloat16 needs TensorFlow 2.9 and a processor with AVX512-BF16 or AMX.",
        choices=("float32", "bfloat16"),
    )
    check_numerics: bool = _training(
        False,
        "Stop an update at the first operation that makes a NaN or infinite value, and show the "
        "line that made the operation; slow.",
    )
    accumulate: int = _training(
        1,
        "Parts in which a batch is computed, one after the other, to need less memory; the update "
        "is by the mean of their gradients.",
        at_least=1,
        at_most=1000,
    )
    epochs: int = _training(20, "Passes of each worker over the training set.", at_least=1)
    max_steps: int | None = _training(
        None, "Updates of all workers, instead of --epochs.", at_least=1
    )
    seed: int = _training(
        1,
        "Seed of the initial values and of the order of the examples.",
        at_least=0,
        at_most=2**31 - 1,
    )
    warm_start: str | None = _training(
        None,
        "Log folder or checkpoint of another run, whose values a new run takes for variables with "
        "the same names and shapes.",
    )
    steps_per_loop: int = _training(
        0,
        "Most updates in a call of TensorFlow, between two checks of the chief; 0: 20 on the "
        "legacy runtime, 1 with --replicas_to_aggregate, 50 on the modern.",
        at_least=0,
    )
    communication_period: int = _training(
        1,
        "Updates that a worker makes of its own between two messages to the parameter servers.",
        at_least=1,
        at_most=1000,
    )
    algorithm: str = _training(
        "downpour",
        "With --communication_period, how the variables change a worker's copy of them: they "
        "replace it (downpour), or it moves towards them (easgd).",
        choices=("downpour", "easgd"),
    )
    moving_rate: float = _training(
        0.9,
        "With --algorithm=easgd, divided by the number of workers: the share of their difference "
        "by which a copy and the variables move towards each other.",
        above=0,
        at_most=1,
    )
    evaluator: bool = _evaluation(
        False,
        "Start a process beside the local cluster that evaluates its checkpoints.",
        recorded=False,
    )
    eval_every: int = _evaluation(0, "Updates between two evaluations; 0: an epoch.", at_least=0)
    eval_in_chief: bool | None = _evaluation(
        None,
        "Let the chief evaluate each checkpoint, and keep the best; by default it keeps the best "
        "of those that it evaluates, where they are small and no other process does.",
    )
    early_stopping_patience: int | None = _evaluation(
        None,
        "Evaluations in a row without an improvement that end the run; 0: none do, and a run that "
        "was stopped early resumes.",
        at_least=0,
    )
    log_every: int = _recording(100, "Batches of each worker between two lines.", at_least=1)
    summary_every: int = _recording(
        0, "Updates between two points of a curve; 0: a tenth of the run, at most 100.", at_least=0
    )
    profile_steps: str | None = _recording(
        None,
        "Global steps between which the chief's updates are profiled, such as 100-120.",
        recorded=False,
    )
    checkpoint_every: int = _recording(1000, "Updates between two checkpoints.", at_least=1)
    system_metrics_every: float = _recording(
        10.0,
        "Seconds between two samples of each task's CPU, memory and network; 0: none.",
        at_least=0,
    )
    logdir: str | None = _recording(None, "Log folder; default runs/NAME-DATE-TIME.")
    tracking_uri: str | None = _recording(
        None, "MLflow's tracking URI; default $MLFLOW_TRACKING_URI, or mlflow.db in this folder."
    )
    experiment_name: str | None = _recording(
        None, "MLflow's experiment; default $MLFLOW_EXPERIMENT_NAME, or the name of this one."
    )
    run_name: str | None = _recording(
        None, "MLflow's name of the run; default: that of its log folder."
    )
    parent_run: str | None = _recording(None, "MLflow's id of the run that this one is part of.")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        show_in_one_line(cls)
        prepare(cls, Settings)

    def __post_init__(self) -> None:
        check_class(type(self))
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, checked(field, getattr(self, field.name)))
        if self.replicas_to_aggregate and not self.sync:
            raise UserError(
                f"--replicas_to_aggregate={self.replicas_to_aggregate} says how many gradients "
                "make an update of --sync; add that, or leave it out"
            )
        self._check_local_updates()
        first, _ = self.profiled or (0, 0)
        if self.max_steps is not None and first >= self.max_steps:
            raise UserError(
                f"--profile_steps={self.profile_steps} begins when --max_steps={self.max_steps} "
                "ends the run; give earlier steps"
            )
        _check_name("experiment_name", self.experiment_name)
        _check_name("run_name", self.run_name)
        if self.strategy == "multi_worker":
            self._check_multi_worker()
        if self.evaluator and self.eval_in_chief:
            raise UserError(
                "--evaluator and --eval_in_chief both say who evaluates the checkpoints; "
                "give one of them"
            )
        if self.batch_size % self.accumulate:
            raise UserError(
                f"--accumulate={self.accumulate} parts of --batch_size={self.batch_size} would "
                "differ in size; give a number that divides it"
            )
        if self.logdir == "":
            raise UserError("--logdir= is empty; name a folder, or leave it out for a new one")

    def _check_local_updates(self) -> None:
        if self.communication_period > 1 and (self.strategy != "ps" or self.sync):
            raise UserError(
                f"--communication_period={self.communication_period} is of workers that update "
                "parameter servers, each for itself; use --strategy=ps without --sync, or leave it "
                "out"
            )
        if self.algorithm == "easgd" and self.communication_period == 1:
            raise UserError(
                "--algorithm=easgd is of workers with updates of their own; give "
                "--communication_period, such as 10, or leave it out"
            )
        if self.moving_rate != 0.9 and self.algorithm != "easgd":
            raise UserError(
                f"--moving_rate={self.moving_rate:g} is of --algorithm=easgd; add that, or leave "
                "it out"
            )

    def _check_multi_worker(self) -> None:
        if self.runtime == "legacy":
            raise UserError(
                "--strategy=multi_worker needs the modern runtime; what it does, "
                "--strategy=ps --sync does on --runtime=legacy"
            )
        if self.sync:
            raise UserError(
                "--strategy=multi_worker averages the gradients of all workers by itself; "
                "leave --sync and --replicas_to_aggregate out"
            )
        if self.shared_logdir:
            raise UserError(
                "--shared_logdir needs parameter servers, which answer for their folders; "
                "use it with --strategy=ps"
            )
        object.__setattr__(self, "runtime", "modern")

    def resolved(self, name: str) -> Any:
        """Returns the settings with a log folder and an MLflow experiment, even if none was given.

        Their defaults are made from `name`, the name of the experiment, and from the time.
        """
        logdir = local_folder(self.logdir or time.strftime(f"runs/{name}-%Y%m%d-%H%M%S"))
        store_uri(self.tracking_uri, logdir)  # A wrong URI is an error before anything is started.
        return dataclasses.replace(
            self, logdir=logdir, experiment_name=experiment(self.experiment_name, name)
        )

    @property
    def profiled(self) -> tuple[int, int] | None:
        """The global steps at which the profile begins and ends; None without --profile_steps."""
        if self.profile_steps is None:
            return None
        found = re.fullmatch(r"(\d{1,15})-(\d{1,15})", self.profile_steps, re.ASCII)
        first, last = map(int, found.groups()) if found else (0, 0)
        if first >= last:
            raise UserError(
                f"--profile_steps={shortened(self.profile_steps)} is not a range of global steps; "
                "give the first and the last one, such as 100-120"
            )
        return first, last

    def params(self) -> dict[str, bool | int | float | str]:
        """Returns the values to record as the run's parameters, by name; None becomes "none".

        Secrets are left out, and passwords within values are masked.
        """
        names = [field.name for field in dataclasses.fields(self) if field.metadata["recorded"]]
        found = {name: getattr(self, name) for name in names}
        return dict(redacted({k: "none" if v is None else v for k, v in found.items()}))

    def hyperparameters(self) -> list[str]:
        """Returns the names of the settings by which runs are compared.

        These are the settings of data, model and training that differ from their defaults, and the
        learning rate. TensorBoard shows a column for each before the metrics, so the others are
        left out.
        """
        fields = (f for f in dataclasses.fields(self) if f.metadata["group"] in _TUNED)
        values = {f.name: (getattr(self, f.name), f.default) for f in fields}
        return [
            name
            for name, (value, default) in values.items()
            if value is not None and (value != default or name == "learning_rate")
        ]


def _check_name(flag: str, name: str | None) -> None:
    """Raises a `UserError` if MLflow would refuse the name of an experiment or a run.

    MLflow itself refuses most such names only after training has begun, because this package sends
    them to the store in the background.
    """
    if name is None:
        return
    given, most = f"--{flag}={shortened(name)}", _LONGEST_NAMES[flag]
    if not name.strip():
        raise UserError(f"--{flag}={name} is empty; give a name, such as wide-1, or leave it out")
    if len(name) > most:
        raise UserError(f"{given} has {len(name)} characters; give {most} or fewer")
    if any(unicodedata.category(character) in _NO_TEXT for character in name):
        raise UserError(f"{given} is not plain text in one line; give a name of it")
    # A backslash separates folders on a server that runs Windows.
    if ".." in re.split(r"[/\\]", name):
        raise UserError(f"{given} has '..' in it, as a way out of a folder; give a name without")
    if flag == "run_name" and re.match(r"[/\\]|[A-Za-z]:[/\\]", name):
        raise UserError(f"{given} is an absolute path; give a name, such as wide-1")
