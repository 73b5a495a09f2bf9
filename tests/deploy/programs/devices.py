"""A server with the threads and the memory of the flags; prints what TensorFlow has of them."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from compat import Server, UserError, select_runtime, tf
from compat.cluster import ports
from compat.cluster.roles import Role
from compat.cluster.spec import Task
from experiments.launching import devices
from experiments.settings import Settings


def threads(name: str) -> int:
    """Returns how many threads of this process have a name."""
    found = 0
    for file in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # The thread has ended.
            found += file.read_text().strip() == name
    return found


def main(settings: dict[str, Any]) -> None:
    runtime = settings["runtime"]
    config = Settings(inter_op_threads=3, intra_op_threads=2, gpu_memory_fraction=settings["share"])
    report: dict[str, Any] = {}
    select_runtime(runtime)
    devices.hide_gpus(Task("ps", 0), Role.SERVE)
    report["visible"] = os.environ["CUDA_VISIBLE_DEVICES"]
    if runtime == "modern":
        devices.configure_eager(config, alone=False)
        report["eager"] = [
            tf.config.threading.get_inter_op_parallelism_threads(),
            tf.config.threading.get_intra_op_parallelism_threads(),
        ]
        if settings["share"]:
            try:
                devices.configure_eager(config, alone=True)
            except UserError as error:
                report["alone"] = str(error)
    with ports.reserve() as ps, ports.reserve() as worker:
        cluster = {"ps": [ps.address], "worker": [worker.address]}
    server = Server(
        cluster, "ps", 0, config=devices.session_config(config), runtime=runtime, say=lambda _: None
    )
    options = server.server_def.default_session_config
    report["server"] = [options.inter_op_parallelism_threads, options.intra_op_parallelism_threads]
    gpu = options.gpu_options
    report["memory"] = [gpu.allow_growth, gpu.per_process_gpu_memory_fraction]
    report["threads"] = threads("tf_Compute")
    print(json.dumps(report), flush=True)
    os._exit(0)  # A server of TensorFlow has no end of its own.


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
