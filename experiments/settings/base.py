"""The settings that every experiment has."""

from __future__ import annotations

import dataclasses
import os
import time
from dataclasses import dataclass
from typing import Any

from compat.errors import UserError
from compat.tracking import experiment, redacted, store_uri
from experiments.settings import declaration, run_names
from experiments.settings.setting import checked, setting

STRATEGIES = ("local", "ps", "multi_worker")
OPTIMIZERS = ("sgd", "momentum", "adam", "adagrad")
_MOST_THREADS = 10_000


@dataclass(frozen=True)
class Settings:
    """The settings of a run; an experiment's own class adds its own fields.

    A field is written once: it is a flag, an entry of --config, a parameter in MLflow and an
    HParam in TensorBoard. One that is declared again with a value has another default:

        @dataclass(frozen=True)
        class Settings(Settings):
            hidden: int = setting(16, "Hidden units.", at_least=1)
            epochs: int = 5

    Values are checked and converted as those of flags are: see `checked`.

    Raises:
      UserError: a value is of another type, out of bounds, or contradicts another one; or a field
        has no help, an unsupported type, or a name that is taken.
    """

    strategy: str = setting(
        "local",
        "Processes of the run: this one alone; parameter servers (ps); or workers that make each "
        "update together (multi_worker).",
        choices=STRATEGIES,
        group="cluster",
        recorded=False,
    )
    runtime: str = setting(
        "auto",
        "Runtime: graphs and sessions (legacy), ParameterServerStrategy (modern), or the latter "
        "where TensorFlow has it (auto).",
        choices=("auto", "legacy", "modern"),
        group="cluster",
    )
    sync: bool = setting(
        False, "Average all workers' gradients before each update (legacy).", group="cluster"
    )
    replicas_to_aggregate: int = setting(
        0,
        "Gradients in an update of --sync, fewer than workers so as not to wait for the slowest; "
        "0: one of each worker.",
        at_least=0,
        group="cluster",
    )
    num_ps: int = setting(
        1, "Parameter servers of a local cluster.", group="cluster", recorded=False
    )
    num_workers: int = setting(2, "Workers of a local cluster.", group="cluster", recorded=False)
    max_restarts: int = setting(
        3, "Restarts of each task of a local cluster.", group="cluster", recorded=False
    )
    shared_logdir: bool = setting(
        False, "Train only if all tasks see the same log folder.", group="cluster"
    )
    rendezvous_timeout: float = setting(
        60.0, "Seconds to wait for other tasks.", above=0, group="cluster"
    )
    run_token: str = setting(
        "", "Text that only the tasks of this run have.", group="cluster", recorded=False
    )
    allow_network: bool = setting(
        False,
        declaration.ALLOW_NETWORK,
        group="cluster",
    )
    inter_op_threads: int = setting(
        0,
        "Threads for separate operations; 0: one per core.",
        at_least=0,
        at_most=_MOST_THREADS,
        group="training",
    )
    intra_op_threads: int = setting(
        0,
        "Threads within an operation; 0: one per core.",
        at_least=0,
        at_most=_MOST_THREADS,
        group="training",
    )
    gpu_memory_fraction: float | None = setting(
        None,
        "Share of each GPU's memory; by default it grows as needed.",
        above=0,
        at_most=1,
        group="training",
    )
    log_device_placement: bool = setting(
        False, "Print the devices of variables and operations.", group="cluster"
    )
    batch_size: int = setting(100, "Examples in an update.", at_least=1, group="data")
    optimizer: str = setting("adam", "Optimizer.", choices=OPTIMIZERS, group="training")
    learning_rate: float = setting(0.001, "Learning rate.", above=0, group="training")
    weight_decay: float = setting(
        0.0,
        "Factor of a variable that is added to its gradient (L2).",
        at_least=0.0,
        group="training",
    )
    clip_norm: float = setting(
        0.0,
        "Largest norm of all gradients together; 0: no clipping.",
        at_least=0.0,
        group="training",
    )
    epochs: int = setting(
        20, "Passes of each worker over the training set.", at_least=1, group="training"
    )
    max_steps: int | None = setting(
        None, "Updates of all workers, instead of --epochs.", at_least=1, group="training"
    )
    seed: int = setting(
        1,
        "Seed of the initial values and of the order of the examples.",
        at_least=0,
        at_most=2**31 - 1,
        group="training",
    )
    steps_per_loop: int = setting(
        0,
        "Most updates between two checks of the chief; 0: 1 on the legacy runtime, 50 on the "
        "modern.",
        at_least=0,
        group="training",
    )
    evaluator: bool = setting(
        False,
        "Start a process beside the local cluster that evaluates its checkpoints.",
        group="evaluation",
        recorded=False,
    )
    eval_every: int = setting(
        0, "Updates between two evaluations; 0: an epoch.", at_least=0, group="evaluation"
    )
    eval_in_chief: bool = setting(
        False, "Let the chief evaluate its checkpoints, and keep the best.", group="evaluation"
    )
    early_stopping_patience: int | None = setting(
        None,
        "Evaluations in a row without an improvement that end the run; 0: none do, and a run that "
        "was stopped early resumes.",
        at_least=0,
        group="evaluation",
    )
    log_every: int = setting(
        100, "Batches of each worker between two lines.", at_least=1, group="recording"
    )
    summary_every: int = setting(
        0,
        "Updates between two points of a curve; 0: a tenth of the run, at most 100.",
        at_least=0,
        group="recording",
    )
    checkpoint_every: int = setting(
        1000, "Updates between two checkpoints.", at_least=1, group="recording"
    )
    logdir: str | None = setting(
        None, "Log folder; default runs/NAME-DATE-TIME.", group="recording"
    )
    tracking_uri: str | None = setting(
        None,
        "MLflow's tracking URI; default $MLFLOW_TRACKING_URI, or SQLite in the log folder.",
        group="recording",
    )
    experiment_name: str | None = setting(
        None,
        "MLflow's experiment; default $MLFLOW_EXPERIMENT_NAME, or the name of this one.",
        group="recording",
    )
    run_name: str | None = setting(None, "MLflow's name of the run.", group="recording")
    parent_run: str | None = setting(
        None, "MLflow's id of the run that this one is part of.", group="recording"
    )

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        declaration.prepare(cls, Settings)

    def __post_init__(self) -> None:
        declaration.check_class(type(self))
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, checked(field, getattr(self, field.name)))
        if self.replicas_to_aggregate and not self.sync:
            raise UserError(
                f"--replicas_to_aggregate={self.replicas_to_aggregate} says how many gradients "
                "make an update of --sync; add that, or leave it out"
            )
        if self.experiment_name is not None:
            run_names.check_experiment(self.experiment_name)
        run_names.check_run(self.run_name)
        if self.strategy == "multi_worker":
            self._check_multi_worker()
        if self.evaluator and self.eval_in_chief:
            raise UserError(
                "--evaluator and --eval_in_chief both say who evaluates the checkpoints; "
                "give one of them"
            )
        if self.logdir == "":
            raise UserError("--logdir= is empty; name a folder, or leave it out for a new one")

    def _check_multi_worker(self) -> None:
        if self.runtime == "legacy":
            raise UserError(
                "--strategy=multi_worker needs the modern runtime; what it does, "
                "--strategy=ps --sync does on --runtime=legacy"
            )
        if self.sync or self.replicas_to_aggregate:
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
        """Returns the settings with what depends on the experiment's name and the time.

        Args:
          name: of the experiment.
        """
        logdir = self.logdir or time.strftime(f"runs/{name}-%Y%m%d-%H%M%S")
        logdir = os.path.abspath(os.path.expanduser(logdir))
        store_uri(self.tracking_uri, logdir)  # Reported before anything is started.
        return dataclasses.replace(
            self, logdir=logdir, experiment_name=experiment(self.experiment_name, name)
        )

    def params(self) -> dict[str, bool | int | float | str]:
        """Returns the run's parameters, without secrets; None is "none"."""
        found = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.metadata["recorded"]
        }
        return dict(redacted({k: "none" if v is None else v for k, v in found.items()}))
