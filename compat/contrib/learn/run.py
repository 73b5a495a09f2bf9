"""`tf.contrib.learn.RunConfig`, `Experiment` and `learn_runner`."""

from __future__ import annotations

import inspect
import os
import time
from typing import Any, Callable, Mapping

from compat._tensorflow import tf1
from compat.errors import UserError
from compat.estimator.package import names as tf_estimator
from compat.estimator.package import run_config
from compat.runtime import interface
from compat.server import Server

_USUAL = "grpc://"
_servers: dict[str, Any] = {}  # The server of this process, by the address of its master.
TaskType: Any = run_config.TaskType


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
            kwargs.pop(name, None)  # TF_CONFIG sets them.
        if kwargs.get("save_checkpoints_steps") is not None:
            # Here the default means that no value was given.
            kwargs["save_checkpoints_secs"] = None
        session = tf1.ConfigProto(
            log_device_placement=log_device_placement,
            inter_op_parallelism_threads=num_cores,
            intra_op_parallelism_threads=num_cores,
            gpu_options=tf1.GPUOptions(per_process_gpu_memory_fraction=gpu_memory_fraction),
        )
        config = kwargs.pop("session_config", None)
        super().__init__(tf_random_seed=tf_random_seed, session_config=config, **kwargs)
        if config is None:
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
    """An estimator with its input functions.

    `train_and_evaluate` evaluates once, after training. Arguments that set how often it evaluates
    during training, such as `min_eval_frequency`, are accepted and have no effect.
    """

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
        eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60,
        **kwargs: Any,
    ) -> None:
        self.estimator = estimator
        self._train_input, self._eval_input = train_input_fn, eval_input_fn
        self.eval_metrics = eval_metrics
        self.train_steps, self.eval_steps = train_steps, eval_steps
        self._monitors, self._eval_hooks = list(train_monitors or []), eval_hooks
        self._delay, self._throttle = eval_delay_secs, continuous_eval_throttle_secs
        self.reset_export_strategies(export_strategies)

    def reset_export_strategies(self, new_export_strategies: Any = None) -> Any:
        """Replaces the strategies; returns the former ones."""
        former, new = getattr(self, "_exports", []), new_export_strategies or []
        self._exports = list(new) if isinstance(new, (list, tuple, set)) else [new]
        return former

    def extend_train_hooks(self, additional_hooks: Any) -> None:
        """Adds hooks to training."""
        self._monitors.extend(additional_hooks)

    def train(self, delay_secs: Any = None) -> Any:
        """Trains; a task of a cluster also runs its server."""
        config, server = self.estimator.config, None
        if config.cluster_spec and str(config.master).startswith(_USUAL):
            server = _serve(config)
            # The worker of the modern runtime computes for the coordinator.
            if isinstance(server, Server) and server.serves:
                return server.join()
        is_learn = hasattr(self.estimator, "fit")
        train = self.estimator.fit if is_learn else self.estimator.train
        hooks = {"monitors" if is_learn else "hooks": self._monitors}
        return train(input_fn=self._train_input, max_steps=self.train_steps, **hooks)

    def evaluate(self, delay_secs: Any = None, name: str | None = None) -> Any:
        """Evaluates the latest checkpoint; returns the metrics by name."""
        return self._evaluate(self._eval_input, name)

    def _evaluate(
        self, inputs: Callable[..., Any], name: str | None, checkpoint: str | None = None
    ) -> Any:
        metrics = {"metrics": self.eval_metrics} if self.eval_metrics else {}
        return self.estimator.evaluate(
            input_fn=inputs,
            steps=self.eval_steps,
            hooks=self._eval_hooks,
            name=name,
            checkpoint_path=checkpoint,
            **metrics,
        )

    def continuous_eval(
        self,
        delay_secs: float | None = None,
        throttle_delay_secs: float | None = None,
        evaluate_checkpoint_only_once: bool = True,
        continuous_eval_predicate_fn: Callable[..., Any] | None = None,
        name: str = "continuous",
        inputs: Callable[..., Any] | None = None,
    ) -> None:
        """Evaluates and exports new checkpoints until one has reached the step `train_steps`.

        It also ends when `continuous_eval_predicate_fn` returns False. This function receives the
        metrics, None at first, and {} if there was no new checkpoint. If it has a parameter
        `checkpoint_path`, it also receives the path of the last checkpoint.
        """
        proceed: Any = continuous_eval_predicate_fn or (lambda eval_results: True)
        takes_path = "checkpoint_path" in inspect.signature(proceed).parameters
        throttle = self._throttle if throttle_delay_secs is None else throttle_delay_secs
        time.sleep(self._delay if delay_secs is None else delay_secs)
        result: Any = None
        last = None
        while proceed(result, checkpoint_path=last) if takes_path else proceed(result):
            if result and self.train_steps and result["global_step"] >= self.train_steps:
                return
            began, result = time.monotonic(), {}
            checkpoint = tf1.train.latest_checkpoint(self.estimator.model_dir)
            if checkpoint and not (evaluate_checkpoint_only_once and checkpoint == last):
                last = checkpoint
                result = self._evaluate(inputs or self._eval_input, name, checkpoint)
                if inputs is None:
                    self._export(result, checkpoint)
            time.sleep(max(throttle - (time.monotonic() - began), 0))

    def continuous_eval_on_train_data(self, **options: Any) -> None:
        """Does the same as `continuous_eval`, with the inputs of training, and without exports."""
        options = {"name": "continuous_on_train_data", "inputs": self._train_input, **options}
        self.continuous_eval(**options)

    def train_and_evaluate(self) -> Any:
        """Trains, evaluates and exports; returns the metrics and the exports."""
        self.train()
        measures = self.evaluate()
        checkpoint = tf1.train.latest_checkpoint(self.estimator.model_dir)
        return measures, self._export(measures, checkpoint)

    def _export(self, measures: Any, checkpoint: str | None) -> list[Any]:
        core = getattr(self.estimator, "core", self.estimator)
        folder = os.path.join(core.model_dir, "export")
        return [
            strategy.export(core, os.path.join(folder, strategy.name), checkpoint, measures)
            for strategy in self._exports
        ]

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
        task = config.cluster_spec, config.task_type, config.task_id
        if interface.selected() is None:
            server = tf1.train.Server(*task, config=config.session_config)
        else:  # A server of this package exits with the run.
            gpus = config.session_config.gpu_options
            server = Server(*task, config=tf1.ConfigProto(gpu_options=gpus))
        _servers[config.master] = server
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
