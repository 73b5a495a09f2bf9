"""Where the operations of a step run, as the step tells and as TensorFlow did it; legacy runtime.

Prints both as one line of JSON: {"told": {operation: device}, "ran": {operation: device}}, and as
"sent" how many tensors of variables and gradients 5 updates in a call send, by where they are from.
"""

from __future__ import annotations

import collections
import json

import numpy as np

import compat
from compat import tf, tf1
from compat.cluster import ports
from compat.runtime.graphs.chain import Chain
from compat.runtime.graphs.device_placement import shortened
from experiments.mnist import MNIST
from experiments.training.updates import step

WORKER = "/job:worker/task:0"


def main() -> None:
    compat.select_runtime("legacy")
    with ports.reserve() as ps, ports.reserve() as worker:
        cluster = {"ps": [ps.address], "worker": [worker.address]}
    servers = [tf1.train.Server(cluster, job_name=job) for job in cluster]
    spec = tf1.train.ClusterSpec(cluster)
    with tf1.device(tf1.train.replica_device_setter(worker_device=WORKER, cluster=spec)):
        global_step = compat.get_or_create_global_step()
        mnist = MNIST(MNIST.Settings(optimizer="adam", initial="normal"))
        mnist.build()
        update = step.training_step(mnist, global_step, remote=True)
        train = compat.step(
            lambda images, labels, indices: update(
                {"images": tf.gather(images, indices), "labels": tf.gather(labels, indices)}
            ),
            [tf.TensorSpec([2], tf.int32)],
            per_worker_data=[np.zeros([3, 28, 28], np.uint8), np.zeros([3], np.int32)],
        )
    told = {placed.name: placed.device for placed in train.operations()}
    with compat.Supervisor(logdir=None).managed_session(servers[1].target) as session:
        ran = tf1.RunMetadata()
        options = tf1.RunOptions(output_partition_graphs=True)
        session.run(train.outputs[0], train.feed([[0, 1]]), options=options, run_metadata=ran)
        chain = Chain(train.graph, train.placeholders, train.outputs)
        many = tf1.RunMetadata()
        last = chain.outputs(5)[0]
        feed = chain.feed([np.zeros([5, 2], np.int32)])
        session.run(last, feed, options=options, run_metadata=many)
    nodes = [node for part in ran.partition_graphs for node in part.node]
    really = {node.name: shortened(node.device) for node in nodes if node.name in told}
    sent = collections.Counter(
        shortened(node.device)
        for part in many.partition_graphs
        for node in part.node
        if node.op == "_Send" and node.input[0].endswith(("concat", "ReadVariableOp"))
    )
    print(json.dumps({"told": told, "ran": really, "sent": sent}))


if __name__ == "__main__":
    main()
