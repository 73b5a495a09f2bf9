"""The distributed API of TensorFlow 1.x on two runtimes: `tf.compat.v1`, and a ClusterCoordinator.

A program that is written against these names runs on either, by one argument:

    server = compat.Server(cluster, job_name, task_index, runtime="modern")
    if server.serves:
        server.join()  # Returns when training ends.
    else:
        with compat.device(compat.replica_device_setter(cluster=cluster)):
            train = compat.step(train_step, [compat.tf.TensorSpec([None, 784])])
        supervisor = compat.Supervisor(is_chief=server.is_chief, logdir="logs")
        with supervisor.managed_session(server.target) as session:
            while session.planned_step < 1000 and not supervisor.should_stop():
                values = session.run(train, next(batches))

Importing the package does not load TensorFlow; using it does.
"""

from compat import estimator
from compat._tensorflow import tf, tf1
from compat.checkpoint.files import NotFiniteError
from compat.cluster.spec import ClusterSpec
from compat.errors import PeerError, UserError
from compat.processes.exit_codes import run_main
from compat.runtime.device_setter import (
    GreedyLoadBalancingStrategy,
    RandomStrategy,
    byte_size_load_fn,
    replica_device_setter,
)
from compat.runtime.graphs.ahead import ahead
from compat.runtime.hooks import (
    CheckpointSaverHook,
    CheckpointSaverListener,
    ChiefSessionCreator,
    FinalOpsHook,
    GlobalStepWaiterHook,
    LoggingTensorHook,
    NanTensorHook,
    Scaffold,
    SessionRunArgs,
    SessionRunHook,
    StepCounterHook,
    StopAtStepHook,
    SummarySaverHook,
    WorkerSessionCreator,
)
from compat.runtime.interface import (
    average,
    device,
    get_or_create_global_step,
    runtime_from,
    select_runtime,
    step,
    worker_variable,
)
from compat.runtime.monitored import (
    MonitoredSession,
    MonitoredTrainingSession,
    SingularMonitoredSession,
)
from compat.runtime.saver import Saver
from compat.runtime.session import Session, Step
from compat.server import Server
from compat.supervisor import Supervisor

__all__ = [
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "ChiefSessionCreator",
    "ClusterSpec",
    "FinalOpsHook",
    "GlobalStepWaiterHook",
    "GreedyLoadBalancingStrategy",
    "LoggingTensorHook",
    "MonitoredSession",
    "MonitoredTrainingSession",
    "NanTensorHook",
    "NotFiniteError",
    "PeerError",
    "RandomStrategy",
    "Saver",
    "Scaffold",
    "Server",
    "Session",
    "SessionRunArgs",
    "SessionRunHook",
    "SingularMonitoredSession",
    "Step",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
    "Supervisor",
    "UserError",
    "WorkerSessionCreator",
    "ahead",
    "average",
    "byte_size_load_fn",
    "device",
    "estimator",
    "get_or_create_global_step",
    "replica_device_setter",
    "run_main",
    "runtime_from",
    "select_runtime",
    "step",
    "tf",
    "tf1",
    "worker_variable",
]
