"""Runs one worker of a cluster alone: this process is its server and its only replica."""

from __future__ import absolute_import

import contextlib
import functools
import os
import sys


def install(joined):
    """Patches the classes by which a program joins a cluster: they call `joined`, and join none."""
    from tensorflow.python.client import session
    from tensorflow.python.framework import ops
    from tensorflow.python.training import server_lib, sync_replicas_optimizer

    server = server_lib.Server
    server.__init__ = _started(server.__init__, joined)
    server.target = property(lambda self: b"" if bytes is str else "")
    server.start = server.stop = lambda self: None
    server.join = lambda self: _leave()
    ours = sys.modules.get("compat.server")
    if ours is not None:
        ours.Server.__init__ = _member(joined)
    base = session.BaseSession
    base.__init__ = _alone(base.__init__)
    graph = ops.Graph
    graph.device = _anywhere(graph.device)
    module = sync_replicas_optimizer
    replicas = module.SyncReplicasOptimizer
    # TensorFlow 0.12 has two classes.
    for kind in {replicas, getattr(module, "SyncReplicasOptimizerV2", replicas)}:
        for name in ("apply_gradients", "get_init_tokens_op", "get_chief_queue_runner"):
            setattr(kind, name, globals()["_" + name])
        kind.__init__ = _alone_in(kind.__init__)
        kind.make_session_run_hook = lambda self, *args, **kwargs: _hook()


def _started(init, joined):
    @functools.wraps(init)
    def start(self, server_or_cluster_def, job_name=None, task_index=None, *args, **kwargs):
        from tensorflow.python.training import server_lib

        definition = server_or_cluster_def
        if not hasattr(definition, "job_name"):
            cluster = server_lib.ClusterSpec(definition)
            definition = server_lib.tensorflow_server_pb2.ServerDef(
                cluster=cluster.as_cluster_def(),
                job_name=job_name or "worker",
                task_index=task_index or 0,
                protocol="grpc",
            )
        self._server_def = definition
        joined()
        if definition.job_name == "ps":
            _leave()

    start.serves = False
    return start


def _member(joined):
    """Returns the constructor of a `compat.Server` that belongs to no cluster."""

    def start(self, server_or_cluster_def, job_name=None, task_index=None, *args, **kwargs):
        from compat.cluster import roles, spec
        from compat.runtime import interface

        runtime = interface.current_runtime()
        self.runtime, self.has_coordinator = runtime.name, runtime.has_coordinator
        self.cluster = spec.ClusterSpec(server_or_cluster_def)
        self.task = spec.only_task(self.cluster, job_name, task_index)
        self.role = roles.role(self.task, self.cluster, self.has_coordinator)
        self.serves = self.role is roles.Role.SERVE
        self.is_chief, self.synchronous, self.num_workers = True, False, 1
        self.target, self.rendezvous_timeout = "", 0
        joined()
        if self.serves:
            _leave()

    return start


def _leave():
    sys.stderr.write("a parameter server trains nothing; give the arguments of worker 0\n")
    sys.stderr.flush()
    os._exit(3)


def _alone(init):
    @functools.wraps(init)
    def make(self, target="", graph=None, config=None):
        text = target.decode("utf-8") if isinstance(target, bytes) else target
        init(self, "" if text and text.startswith("grpc") else target, graph, config)

    return make


def _anywhere(device):
    @functools.wraps(device)
    def place(self, to):
        is_local = to is None or (not callable(to) and "/job:" not in _named(to))
        return device(self, to) if is_local else _nowhere()

    return place


def _named(to):
    return to.to_string() if hasattr(to, "to_string") else str(to)


@contextlib.contextmanager
def _nowhere():
    yield


def _alone_in(init):
    @functools.wraps(init)
    def make(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self._replicas_to_aggregate = 1

    return make


def _apply_gradients(self, grads_and_vars, global_step=None, name=None):
    """Applies the gradients of the only replica, which equal their average."""
    from tensorflow.python.ops import control_flow_ops

    self._gradients_applied = True
    self.local_step_init_op = self.chief_init_op = control_flow_ops.no_op()
    self.ready_for_local_init_op = None
    # Create it now: the graph may be final when the program asks for it.
    self._alone_runner = _runner()
    return self._opt.apply_gradients(grads_and_vars, global_step, name)


def _get_init_tokens_op(self, num_tokens=-1):
    return self.chief_init_op


def _get_chief_queue_runner(self):
    return self._alone_runner


def _runner():
    """Returns a queue runner without threads."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import data_flow_ops
    from tensorflow.python.training import queue_runner

    queue = data_flow_ops.FIFOQueue(1, [dtypes.int32], shapes=[()], name="replicas_queue")
    return queue_runner.QueueRunner(queue, [queue.enqueue(0)])


def _hook():
    from tensorflow.python.training import session_run_hook

    return session_run_hook.SessionRunHook()
