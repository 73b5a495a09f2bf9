"""A cluster where proxies are set: its traffic goes past them, and that is said."""

from __future__ import annotations

import socket
from typing import Any

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.endings, pytest.mark.once, pytest.mark.long]

SAID = "proxies are set; what the tasks send each other goes past them (no_proxy)\n"


def test_a_cluster_trains_past_proxies(train: Any, tasks: Any, runtime: str) -> None:
    """Without a word from the task whose user has seen to it; an evaluator looks for its chief."""
    cluster = tasks(ps=1, worker=1)
    flags = [f"--runtime={runtime}", "--max_steps=24", "--rendezvous_timeout=120"]
    with socket.socket() as proxy:
        proxy.bind(("127.0.0.1", 0))
        proxy.listen()
        proxy.setblocking(False)
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        env = {"http_proxy": address, "https_proxy": address}
        ps = cluster.start("ps", 0, *flags, env={**env, "no_proxy": "127.0.0.1"})
        worker = cluster.start("worker", 0, *flags, env=env)
        nobody = ["--ps_hosts=127.0.0.1:1", "--worker_hosts=127.0.0.1:2"]
        evaluator = train(
            "--strategy=ps", "--job_name=evaluator", *nobody, "--rendezvous_timeout=2", env=env
        )
        codes = [task.wait().code for task in (worker, ps, evaluator)]
        assert codes == [0, 0, 138], worker.out + worker.err + ps.err
        assert [task.out.count(SAID) for task in (worker, ps, evaluator)] == [1, 0, 1]
        with pytest.raises(BlockingIOError):  # Nobody has called.
            proxy.accept()
