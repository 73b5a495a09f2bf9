"""The command line of a training, turned at once into a frozen `Config`."""

from __future__ import annotations

import os
import time

from absl import flags

from compat.cluster.environment import cluster_from_hosts, cluster_from_tf_config
from compat.cluster.spec import ClusterSpec, Task
from compat.errors import UserError
from compat.tracking import experiment, store_uri
from experiments.settings import config
from experiments.settings.config import Config

flags.disclaim_key_flags()  # So that the program's --help shows them.

EVALUATOR = "evaluator"  # The job of a process beside the cluster.
_DATASETS = ("mnist", "fashion_mnist", "digits", "auto")
_DEFAULT = Config()


def define_cluster() -> None:
    """Defines the flags that say where a training runs, and what joins its workers."""
    f = flags
    f.DEFINE_enum(
        "strategy",
        "local",
        config.STRATEGIES,
        "One process; parameter servers; or workers that make each update together, without any.",
    )
    f.DEFINE_enum(
        "runtime",
        "auto",
        ("auto", "legacy", "modern"),
        "Graphs and sessions, ParameterServerStrategy, or the latter where TensorFlow has it.",
    )
    f.DEFINE_bool("sync", False, "Average all workers' gradients before each update (legacy).")
    f.DEFINE_integer(
        "replicas_to_aggregate",
        _DEFAULT.replicas_to_aggregate,
        "Gradients in an update of --sync; with fewer than workers, the slowest are not waited "
        "for; 0: one of each.",
    )
    f.DEFINE_string("job_name", None, "Job of this process: ps, worker, chief or evaluator.")
    f.DEFINE_integer("task_index", 0, "Index of this process within its job.")
    f.DEFINE_string("ps_hosts", None, "host:port of each parameter server, by commas.")
    f.DEFINE_string("worker_hosts", None, "host:port of each worker, by commas.")
    f.DEFINE_alias("parameter_servers", "ps_hosts")
    f.DEFINE_alias("workers", "worker_hosts")
    f.DEFINE_integer("num_ps", 1, "Parameter servers of a whole cluster on this machine.")
    f.DEFINE_integer("num_workers", 2, "Workers of a whole cluster on this machine.")
    f.DEFINE_integer("max_restarts", 3, "Restarts there of each task that was killed.")
    f.DEFINE_bool("evaluator", False, "A process beside the cluster evaluates its checkpoints.")
    f.DEFINE_bool("shared_logdir", False, "Train only if all tasks see the same log folder.")
    f.DEFINE_bool("log_device_placement", False, "Print where variables and operations live.")
    f.DEFINE_float(
        "rendezvous_timeout", _DEFAULT.rendezvous_timeout, "Seconds to wait for other tasks."
    )
    f.DEFINE_string("run_token", _DEFAULT.run_token, "Text that only this training's tasks have.")
    define_allow_network()


def define_allow_network() -> None:
    """Defines the flag without which no cluster goes beyond this machine."""
    flags.DEFINE_bool(
        "allow_network",
        False,
        "Let tasks be on other machines: who reaches their ports can run anything there.",
    )


def define_training() -> None:
    """Defines the flags that say what is trained, and where its record lies."""
    f = flags
    f.DEFINE_enum("dataset", "auto", _DATASETS, "auto: MNIST if it can be had, else digits.")
    f.DEFINE_string("data_dir", None, "Folder of the data; default $MNIST_DATA_DIR or a cache.")
    f.DEFINE_enum("model", _DEFAULT.model, config.MODELS, "The network.")
    f.DEFINE_enum("optimizer", _DEFAULT.optimizer, config.OPTIMIZERS, "The optimizer.")
    f.DEFINE_float("learning_rate", _DEFAULT.learning_rate, "Of the optimizer.")
    f.DEFINE_integer("batch_size", _DEFAULT.batch_size, "Examples in an update.")
    f.DEFINE_integer("epochs", _DEFAULT.epochs, "Passes of each worker over the training set.")
    f.DEFINE_integer("max_steps", None, "Updates in all; takes the place of --epochs.")
    f.DEFINE_integer("seed", _DEFAULT.seed, "Of the weights and the order of the examples.")
    f.DEFINE_integer(
        "steps_per_loop",
        _DEFAULT.steps_per_loop,
        "Updates between two looks of the chief; 0: 1 on the legacy runtime, 50 on the modern.",
    )
    f.DEFINE_integer("log_every", _DEFAULT.log_every, "Batches of each worker between two lines.")
    f.DEFINE_integer(
        "summary_every",
        _DEFAULT.summary_every,
        "Updates between two points; 0: a tenth of the training, and at most 100.",
    )
    f.DEFINE_integer(
        "eval_every", _DEFAULT.eval_every, "Updates between two validations; 0: each epoch."
    )
    f.DEFINE_integer(
        "checkpoint_every", _DEFAULT.checkpoint_every, "Updates between two checkpoints."
    )
    f.DEFINE_bool("eval_in_chief", False, "The chief evaluates its checkpoints, keeps the best.")
    f.DEFINE_integer(
        "early_stopping_patience",
        _DEFAULT.early_stopping_patience,
        "Evaluations in a row without an improvement that end the run; 0: none do, and a run that "
        "was stopped early resumes.",
    )
    f.DEFINE_string("logdir", None, "Folder of the training; default runs/mnist-DATE-TIME.")
    f.DEFINE_string(
        "tracking_uri",
        None,
        "Of MLflow; default $MLFLOW_TRACKING_URI, or SQLite in the log folder.",
    )
    f.DEFINE_string(
        "experiment_name",
        _DEFAULT.experiment_name,
        "MLflow's experiment; default $MLFLOW_EXPERIMENT_NAME, or as here.",
    )
    f.DEFINE_string("run_name", None, "MLflow's name of the run; no path.")
    f.DEFINE_string("parent_run", None, "MLflow's id of the run that this one is part of.")
    f.DEFINE_integer("inter_op_threads", 0, "Threads for separate operations; 0: one a core.")
    f.DEFINE_integer("intra_op_threads", 0, "Threads within one operation; 0: one a core.")
    f.DEFINE_float("gpu_memory_fraction", None, "Share of each GPU's memory; default: as it grows.")


def check_end(values: flags.FlagValues) -> None:
    """Sees that the flags say in one way when a training ends.

    Raises:
      UserError: they do in two.
    """
    if values.max_steps is not None and values["epochs"].present:
        raise UserError(
            f"--epochs={values.epochs} and --max_steps={values.max_steps} both say when to end; "
            "give one of them"
        )


def config_from_flags(values: flags.FlagValues) -> Config:
    """Returns the settings.

    Raises:
      UserError: a value is out of range, or two contradict each other.
    """
    check_end(values)
    settings = {name: values[name].value for name in Config.__dataclass_fields__}
    if values.strategy == "multi_worker":
        if values.runtime == "legacy":
            raise UserError(
                "--strategy=multi_worker needs the modern runtime; what it does, "
                "--strategy=ps --sync does on --runtime=legacy"
            )
        if values.sync or values.replicas_to_aggregate:
            raise UserError(
                "--strategy=multi_worker averages the gradients of all workers by itself; "
                "leave --sync and --replicas_to_aggregate out"
            )
        if values.shared_logdir:
            raise UserError(
                "--shared_logdir needs parameter servers, which answer for their folders; "
                "use it with --strategy=ps"
            )
        settings["runtime"] = "modern"
    if values.evaluator and values.eval_in_chief:
        raise UserError(
            "--evaluator and --eval_in_chief both say who evaluates the checkpoints; "
            "give one of them"
        )
    if settings["logdir"] == "":
        raise UserError("--logdir= is empty; name a folder, or leave it out for a new one")
    if settings["logdir"] is None:
        settings["logdir"] = time.strftime("runs/mnist-%Y%m%d-%H%M%S")
    settings["logdir"] = os.path.abspath(os.path.expanduser(settings["logdir"]))
    if not values["experiment_name"].present:
        settings["experiment_name"] = experiment(None, values.experiment_name)
    store_uri(settings["tracking_uri"], settings["logdir"])  # Said before anything is started.
    return Config(**settings)


def place_from_flags(
    values: flags.FlagValues, environment: str | None
) -> tuple[ClusterSpec | None, Task | None]:
    """Returns the cluster and this process's task in it.

    Args:
      values: the parsed flags.
      environment: TF_CONFIG, if it is set.

    Returns:
      Both, or neither if a whole cluster is to be started on this machine, or if there is none.
      An evaluator is in no cluster: its own may be empty.

    Raises:
      UserError: something is missing, contradictory or malformed.
    """
    if values.job_name == EVALUATOR:
        return _beside_cluster(values), Task(EVALUATOR, values.task_index)
    if values.strategy == "local":
        of_cluster = ["job_name", "task_index", "ps_hosts", "worker_hosts"]
        of_cluster += ["num_ps", "num_workers", "max_restarts", "evaluator"]
        given = [name for name in of_cluster if values[name].present]
        if given:
            raise UserError(
                f"--{given[0]}={values[given[0]].value} describes a cluster; "
                "add --strategy=ps, or leave it out"
            )
        return None, None
    with_ps = values.strategy == "ps"
    needed = [n for n in ("job_name", "ps_hosts", "worker_hosts") if with_ps or n != "ps_hosts"]
    if not with_ps:
        for name in ("ps_hosts", "num_ps"):
            if values[name].present:
                raise UserError(
                    f"--{name}={values[name].value} is of no use to --strategy=multi_worker, which "
                    "has no parameter server; leave it out, or use --strategy=ps"
                )
    given = [name for name in needed if values[name].value is not None]
    if not given:
        return _from_tf_config(environment, with_ps) if environment else (None, None)
    missing = [name for name in needed if not values[name].value]
    if missing:
        raise UserError(
            f"--{missing[0]} is missing beside --{given[0]}={values[given[0]].value}; a task needs "
            f"--{', --'.join(needed)} and --task_index, a whole local cluster none of them"
        )
    cluster = cluster_from_hosts(values.ps_hosts, values.worker_hosts)
    return cluster, Task(values.job_name, values.task_index)


def check_evaluation(values: flags.FlagValues, task: Task | None) -> None:
    """Sees that an evaluator knows what to evaluate, and that who is to stop early is evaluated.

    Raises:
      UserError: not so.
    """
    evaluates = task is not None and task.job == EVALUATOR
    if evaluates and values.logdir is None:
        raise UserError(
            "--logdir is missing; an evaluator needs that of the chief, whose checkpoints it reads"
        )
    patience = values.early_stopping_patience
    if patience and not (evaluates or values.evaluator or values.eval_in_chief):
        raise UserError(
            f"--early_stopping_patience={patience} counts evaluations, and nobody is said to make "
            "any; add --eval_in_chief, or --evaluator for a process of its own"
        )


def _beside_cluster(values: flags.FlagValues) -> ClusterSpec:
    """Returns the cluster that an evaluator looks at, empty if it is told of none."""
    if values.task_index < 0:
        raise UserError(f"--task_index={values.task_index} is negative; give 0 or more")
    if values.worker_hosts is None:
        return ClusterSpec({})
    return cluster_from_hosts(values.ps_hosts, values.worker_hosts)


def _from_tf_config(environment: str, with_ps: bool) -> tuple[ClusterSpec, Task]:
    cluster, task = cluster_from_tf_config(environment)
    if task.job == EVALUATOR:
        return cluster, task
    if with_ps != ("ps" in cluster.jobs):
        raise UserError(
            "the cluster of TF_CONFIG has no ps; add one, or use --strategy=multi_worker"
            if with_ps
            else "the cluster of TF_CONFIG has ps tasks; take them out, or use --strategy=ps"
        )
    return cluster, task
