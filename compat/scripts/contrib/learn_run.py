"""`tf.contrib.learn.RunConfig`, `Experiment` with its exports, and `learn_runner`."""

from __future__ import annotations

import collections
import os
from typing import Any, Callable, Mapping

from compat._tensorflow import tf1
from compat.errors import UserError
from compat.estimator.package import names as tf_estimator
from compat.estimator.package import run_config

_USUAL = "grpc://"
_servers: dict[str, Any] = {}  # By master; a process runs one task.
TaskType: Any = run_config.TaskType

build_parsing_serving_input_fn = tf_estimator.export.build_parsing_serving_input_receiver_fn
build_default_serving_input_fn = tf_estimator.export.build_raw_serving_input_receiver_fn


class Environment:
    """The environment of a program, from TF_CONFIG."""

    CLOUD = "cloud"
    GOOGLE = "google"
    LOCAL = "local"


class RunConfig(tf_estimator.RunConfig):
    """`tf.estimator.RunConfig`, with the arguments of `tf.contrib.learn`.

    In a cluster without a chief or a master, worker 0 is the chief.
    """

    def __init__(
        self,
        master: str | None = None,
        num_cores: int = 0,
        log_device_placement: bool = False,
        gpu_memory_fraction: float = 1,
        tf_random_seed: int | None = None,
        evaluation_master: str = "",
        **kwargs: Any,
    ) -> None:
        for name in ("task", "num_ps_replicas", "cluster_spec", "job_name", "is_chief"):
            kwargs.pop(name, None)  # Set by TF_CONFIG.
        if kwargs.get("save_checkpoints_steps") is not None:
            kwargs["save_checkpoints_secs"] = None  # The default meant "not given".
        session = tf1.ConfigProto(
            log_device_placement=log_device_placement,
            inter_op_parallelism_threads=num_cores,
            intra_op_parallelism_threads=num_cores,
            gpu_options=tf1.GPUOptions(per_process_gpu_memory_fraction=gpu_memory_fraction),
        )
        given = kwargs.pop("session_config", None)
        super().__init__(tf_random_seed=tf_random_seed, session_config=given, **kwargs)
        if given is None:
            session.MergeFrom(self.session_config or tf1.ConfigProto(allow_soft_placement=True))
            self._session_config = session
        if master is not None:
            self._master = master
        if evaluation_master:
            self._evaluation_master = evaluation_master

    def _init_distributed_setting_from_environment_var(self, tf_config: Mapping[str, Any]) -> None:
        self._environment = tf_config.get("environment", Environment.LOCAL)
        jobs = tf_config.get("cluster") or {}
        task = dict(tf_config.get("task") or {})
        if not jobs or "chief" in jobs or "master" in jobs:
            super()._init_distributed_setting_from_environment_var(
                dict(tf_config) if jobs else {"service": tf_config.get("service")}
            )
            return
        self._service = tf_config.get("service")
        self._cluster_spec = tf1.train.ClusterSpec(jobs)
        self._task_type = str(task.get("type", TaskType.WORKER))
        self._task_id = int(task.get("index", 0))
        addresses = jobs.get(self._task_type, [])
        self._master = _USUAL + addresses[self._task_id] if addresses else ""
        self._evaluation_master = ""
        self._is_chief = self._task_type == TaskType.WORKER and self._task_id == 0
        self._num_ps_replicas = len(jobs.get(TaskType.PS, []))
        self._num_worker_replicas = len(jobs.get(TaskType.WORKER, []))
        self._global_id_in_cluster = None

    environment = property(lambda self: str(self._environment))
    tf_config = property(lambda self: self._session_config)
    job_name = property(lambda self: str(self.task_type))  # This and `task` are names of 0.x.
    task = property(lambda self: int(self.task_id))


class Experiment:
    """An estimator with its inputs; evaluates once after training, whatever the intervals."""

    def __init__(
        self,
        estimator: Any,
        train_input_fn: Callable[..., Any],
        eval_input_fn: Callable[..., Any],
        eval_metrics: Any = None,
        train_steps: int | None = None,
        eval_steps: int | None = 100,
        train_monitors: Any = None,
        eval_hooks: Any = None,
        export_strategies: Any = None,
        **kwargs: Any,
    ) -> None:
        self.estimator = estimator
        self._train_input, self._eval_input = train_input_fn, eval_input_fn
        self._metrics = eval_metrics
        self.train_steps, self.eval_steps = train_steps, eval_steps
        self._monitors, self._eval_hooks = list(train_monitors or []), eval_hooks
        strategies = export_strategies or []
        self._exports = strategies if isinstance(strategies, (list, tuple)) else [strategies]

    def extend_train_hooks(self, additional_hooks: Any) -> None:
        """Adds hooks to training."""
        self._monitors.extend(additional_hooks)

    def train(self, delay_secs: Any = None) -> Any:
        """Trains; a task of a cluster also runs its server."""
        config = self.estimator.config
        if config.cluster_spec and str(config.master).startswith(_USUAL):
            _serve(config)
        is_learn = hasattr(self.estimator, "fit")
        train = self.estimator.fit if is_learn else self.estimator.train
        hooks = {"monitors" if is_learn else "hooks": self._monitors}
        return train(input_fn=self._train_input, max_steps=self.train_steps, **hooks)

    def evaluate(self, delay_secs: Any = None, name: str | None = None) -> Any:
        """Evaluates the latest checkpoint; returns the metrics by name."""
        metrics = {"metrics": self._metrics} if self._metrics else {}
        return self.estimator.evaluate(
            input_fn=self._eval_input,
            steps=self.eval_steps,
            hooks=self._eval_hooks,
            name=name,
            **metrics,
        )

    def train_and_evaluate(self) -> Any:
        """Trains, evaluates and exports; returns the metrics and the exports."""
        self.train()
        measures = self.evaluate()
        core = getattr(self.estimator, "core", self.estimator)
        folder = os.path.join(core.model_dir, "export")
        checkpoint = tf1.train.latest_checkpoint(core.model_dir)
        exports = [
            strategy.export(core, os.path.join(folder, strategy.name), checkpoint, measures)
            for strategy in self._exports
        ]
        return measures, exports

    local_run = train_and_evaluate
    continuous_train_and_eval = train_and_evaluate

    def test(self) -> Any:
        """Trains and evaluates for one step."""
        self.train_steps = self.eval_steps = 1
        return self.train_and_evaluate()[0]

    def run_std_server(self) -> None:
        """Runs the server of a parameter server."""
        _serve(self.estimator.config).join()


def _serve(config: Any) -> Any:
    if config.master not in _servers:
        _servers[config.master] = tf1.train.Server(
            config.cluster_spec, config.task_type, config.task_id, config=config.session_config
        )
    return _servers[config.master]


def run(
    experiment_fn: Callable[..., Any],
    output_dir: str | None = None,
    schedule: str | None = None,
    run_config: Any = None,
    hparams: Any = None,
) -> Any:
    """Runs a method of an experiment; by default the one for the job of this task."""
    if run_config is None:
        experiment = experiment_fn(output_dir)
    else:
        if output_dir:
            run_config = run_config.replace(model_dir=output_dir)
        experiment = experiment_fn(run_config, hparams)
    schedule = schedule or _schedule(run_config or experiment.estimator.config)
    if not hasattr(experiment, schedule):
        raise UserError(
            f"schedule {schedule!r} is not a method of Experiment; name one, such as 'train'"
        )
    return getattr(experiment, schedule)()


def _schedule(config: Any) -> str:
    if not config.cluster_spec:
        return "train_and_evaluate"
    if config.task_type == TaskType.PS:
        return "run_std_server"
    return "train_and_evaluate" if config.is_chief else "train"


def tune(experiment_fn: Callable[..., Any], tuner: Any) -> None:
    """Runs the experiments that a tuner requests."""
    while tuner.next_trial():
        tuner.run_experiment(experiment_fn)


class ExportStrategy(collections.namedtuple("ExportStrategy", ["name", "export_fn"])):
    """A named function that exports an estimator to a folder."""

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: Any = None, eval_result: Any = None
    ) -> Any:
        """Exports the estimator; returns the folder."""
        return self.export_fn(estimator, export_path, checkpoint_path)


def InputFnOps(features: Any, labels: Any = None, default_inputs: Any = None) -> Any:
    """Returns the serving input receiver of `tf.estimator` for the inputs of a serving function."""
    return tf_estimator.export.ServingInputReceiver(features, default_inputs or features)


def make_export_strategy(serving_input_fn: Callable[[], Any], **kwargs: Any) -> ExportStrategy:
    """Returns a strategy that exports a SavedModel."""
    as_text = bool(kwargs.get("as_text", False))

    def export(estimator: Any, path: str, checkpoint: str | None = None) -> Any:
        core = getattr(estimator, "core", estimator)
        return core.export_saved_model(
            path, serving_input_fn, as_text=as_text, checkpoint_path=checkpoint
        )

    return ExportStrategy("Servo", export)


def get_most_recent_export(export_dir_base: str) -> str | None:
    """Returns the folder of the latest export, or None."""
    found = [name.rstrip("/") for name in tf1.gfile.ListDirectory(export_dir_base)]
    newest = max((name for name in found if name.isdigit()), key=int, default=None)
    return f"{export_dir_base}/{newest}" if newest else None
