"""`train_and_evaluate`, in one process or as a task of TF_CONFIG."""

from __future__ import annotations

from typing import Any

from compat._tensorflow import tf1
from compat.errors import UserError
from compat.estimator import worker_inputs
from compat.estimator.lifted import inputs_of
from compat.estimator.package import training
from compat.server import Server


class _Executor(training._TrainingExecutor):
    """Runs a task as tensorflow-estimator does, but on a server that exits when the run is over."""

    def __init__(self, options: dict[str, Any], *args: Any) -> None:
        super().__init__(*args)
        self._options = options
        self._server: Server | None = None

    def _start_std_server(self, config: Any) -> Server | None:
        if not config.master:
            return None  # This task is the only one in the cluster.
        if self._server is None:
            gpus = getattr(config.session_config, "gpu_options", None)
            self._server = Server(
                config.cluster_spec,
                config.task_type,
                config.task_id,
                protocol=config.protocol,
                config=tf1.ConfigProto(gpu_options=gpus),
                **self._options,
            )
            departures = self._server.departures
            if departures is not None:
                departures.enter()  # Before the package delays a worker for seconds.
        return self._server

    def _start_distributed_training(self, saving_listeners: Any = None) -> None:
        estimator = self._estimator
        server = self._start_std_server(estimator.config)
        if server is not None and server.serves:
            worker_inputs.publish(server, inputs_of(estimator, self._train_spec.input_fn))
            server.join()
            return
        estimator.workers_publish = server is not None
        super()._start_distributed_training(saving_listeners)
        if server is not None and server.departures is not None:
            server.departures.leave()  # No session does if all steps were made before it began.


def train_and_evaluate(
    estimator: Any, train_spec: Any, eval_spec: Any, **server_options: Any
) -> Any:
    """`tf.estimator.train_and_evaluate` whose tasks exit when the run is over.

    In a cluster of TF_CONFIG the chief, or the master, and the workers train, and the evaluator
    evaluates each new checkpoint. On the modern runtime the chief hands out the steps and the
    workers run them.

    Args:
      estimator: An estimator of `compat.estimator`.
      train_spec: A `TrainSpec`.
      eval_spec: An `EvalSpec`.
      **server_options: Of `compat.Server`, such as `allow_network=True`.

    Returns:
      The metrics of the last evaluation and what the exporters return; None in a cluster.

    Raises:
      UserError: There is more than one evaluator, or the cluster is not valid.
      PeerError: A task of the cluster did not start, or was lost and has not returned.
    """
    config = estimator.config
    if config.task_type == "evaluator" and config.task_id > 0:
        raise UserError(
            f"TF_CONFIG makes this task evaluator {config.task_id}, and a cluster has one "
            "evaluator; give it index 0"
        )
    return _Executor(server_options, estimator, train_spec, eval_spec).run()
