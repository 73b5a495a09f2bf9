"""The settings of a training, checked once and frozen."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from compat.errors import UserError
from experiments.settings import run_names

STRATEGIES = ("local", "ps", "multi_worker")
MODELS = ("mlp", "cnn")
OPTIMIZERS = ("sgd", "momentum", "adam")
_MOST = 2**53  # Up to here, TensorBoard shows a setting as it is.
_MOST_THREADS = 10_000


@dataclass(frozen=True)
class Config:
    """What a training does; where it runs is the cluster's business.

    Attributes:
      runtime: "legacy", "modern" or "auto".
      sync: aggregate the gradients of all workers before each update; legacy runtime only.
      replicas_to_aggregate: gradients that make such an update; 0: one of each worker.
      dataset: see `compat.datasets.NAMES`.
      data_dir: folder with the IDX files; None: `$MNIST_DATA_DIR`, else the cache.
      model: see `MODELS`.
      optimizer: see `OPTIMIZERS`.
      learning_rate: of the optimizer.
      batch_size: examples in an update.
      epochs: passes of each worker over the training set; not used if `max_steps` is given.
      max_steps: updates in all, or None.
      seed: of the weights and of the order of the examples.
      steps_per_loop: updates between two looks of the chief; 0: 1 on the legacy runtime, where
        each is a call of its own anyhow, and 50 on the modern one, where they are one closure.
      log_every: batches of each worker between two lines on the console.
      summary_every: updates between two points of the curves; 0: a tenth of the training, and
        at most 100.
      eval_every: updates between two looks at the validation set; 0: at each epoch's end.
      checkpoint_every: updates between two checkpoints.
      eval_in_chief: have the chief make a checkpoint of each look at the validation set, and look
        at each checkpoint; the best one is kept.
      early_stopping_patience: evaluations in a row without an improvement after which the run
        ends; 0: none do, nor does an earlier request; None: not given, an evaluator may have it.
      logdir: folder for checkpoints, summaries and tracking.
      tracking_uri: of MLflow; None: a SQLite file in `logdir`.
      experiment_name: MLflow's experiment.
      run_name: MLflow's name of the run; None: MLflow makes one up.
      parent_run: MLflow's id of the run that this one is part of, or None.
      shared_logdir: train only if all tasks of the cluster see the same log folder.
      inter_op_threads: threads for operations side by side; 0: TensorFlow's choice.
      intra_op_threads: threads within one operation; 0: TensorFlow's choice.
      gpu_memory_fraction: share of each GPU's memory that a task may take, above 0 to 1; None: it
        takes what it needs, as it needs it.
      log_device_placement: print where variables and operations live.
      rendezvous_timeout: seconds for which peers are waited for.
      run_token: the same text for all tasks, which no other training has; may be empty.
      allow_network: whether tasks may be on other machines, see `compat.cluster.access`.
    """

    runtime: str = "auto"
    sync: bool = False
    replicas_to_aggregate: int = 0
    dataset: str = "auto"
    data_dir: str | None = None
    model: str = "mlp"
    optimizer: str = "sgd"
    learning_rate: float = 0.001
    batch_size: int = 100
    epochs: int = 20
    max_steps: int | None = None
    seed: int = 1
    steps_per_loop: int = 0
    log_every: int = 100
    summary_every: int = 0
    eval_every: int = 0
    checkpoint_every: int = 1000
    eval_in_chief: bool = False
    early_stopping_patience: int | None = None
    logdir: str = "runs/mnist"
    tracking_uri: str | None = None
    experiment_name: str = "mnist"
    run_name: str | None = None
    parent_run: str | None = None
    shared_logdir: bool = False
    inter_op_threads: int = 0
    intra_op_threads: int = 0
    gpu_memory_fraction: float | None = None
    log_device_placement: bool = False
    rendezvous_timeout: float = 60.0
    run_token: str = ""
    allow_network: bool = False

    def __post_init__(self) -> None:
        for name, least in (
            ("replicas_to_aggregate", 0),
            ("batch_size", 1),
            ("epochs", 1),
            ("max_steps", 1),
            ("steps_per_loop", 0),
            ("log_every", 1),
            ("summary_every", 0),
            ("eval_every", 0),
            ("checkpoint_every", 1),
            ("early_stopping_patience", 0),
            ("inter_op_threads", 0),
            ("intra_op_threads", 0),
        ):
            value = getattr(self, name)
            if value is not None and value < least:
                raise UserError(f"--{name}={value} is too small; give {least} or more")
            most = _MOST_THREADS if name.endswith("threads") else _MOST
            if value is not None and value > most:
                raise UserError(f"--{name}={value} is too large; give {most} or fewer")
        if self.replicas_to_aggregate and not self.sync:
            raise UserError(
                f"--replicas_to_aggregate={self.replicas_to_aggregate} says how many gradients "
                "make an update of --sync; add that, or leave it out"
            )
        if not 0 <= self.seed < 2**31:
            raise UserError(f"--seed={self.seed} is out of range; give 0 to {2**31 - 1}")
        fraction = self.gpu_memory_fraction
        if fraction is not None and not 0 < fraction <= 1:
            raise UserError(
                f"--gpu_memory_fraction={fraction} is no share; give one above 0 and up to 1"
            )
        for name in ("learning_rate", "rendezvous_timeout"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise UserError(f"--{name}={value} is not a positive number; give one, such as 0.1")
        run_names.check_experiment(self.experiment_name)
        run_names.check_run(self.run_name)

    def params(self) -> dict[str, bool | int | float | str]:
        """Returns the settings as a run's parameters; what is None says so."""
        settings = asdict(self)
        del settings["run_token"]  # Another one each time, also where a run is gone on with.
        return {name: "none" if value is None else value for name, value in settings.items()}
