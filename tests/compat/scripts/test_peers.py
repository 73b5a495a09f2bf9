"""Tasks that are started one by one: in any order, and ended by force."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.compat.scripts.conftest import DEADLINE_SECS, PACKAGES

pytestmark = [pytest.mark.once, pytest.mark.long]
SCRIPT = """
import sys
import time
import tensorflow as tf
cluster = tf.train.ClusterSpec({"ps": ["pc-01:2222"], "worker": ["pc-02:2222"]})
server = tf.train.Server(cluster, job_name=sys.argv[1], task_index=0)
if sys.argv[1] == "ps":
    server.join()
with tf.device("/job:ps/task:0"):
    update = tf.Variable(0.0).assign_add(1.0)
supervisor = tf.train.Supervisor(init_op=tf.initialize_all_variables())
with supervisor.managed_session(server.target) as session:
    while not supervisor.should_stop():
        print("weight %g" % session.run(update))
        time.sleep(0.1)
"""


class Task:
    """A task of the script, started as in a terminal of its own."""

    def __init__(self, folder: Path, job: str) -> None:
        self._out, self._err = folder / f"{job}.out", folder / f"{job}.err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-u", "-m", "compat", "run", "--local", "script.py", job],
                cwd=str(folder),
                # The file with the ports is there, too.
                env={**os.environ, "PYTHONPATH": PACKAGES, "TMPDIR": str(folder)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    def wait_until_it_says(self, pattern: str) -> None:
        deadline = time.monotonic() + DEADLINE_SECS
        while not re.search(pattern, self._out.read_text()):
            assert self.process.poll() is None, self.complaints
            assert time.monotonic() < deadline, self._out.read_text() + self.complaints
            time.sleep(0.1)

    @property
    def complaints(self) -> str:
        return self._err.read_text()


@pytest.mark.cluster
def test_nobody_is_waited_for_in_silence(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    tasks = [Task(tmp_path, "worker")]
    try:
        (worker,) = tasks
        worker.wait_until_it_says(r"compat: waiting for /job:ps/task:0 at \S+: refused")
        server = Task(tmp_path, "ps")
        tasks.append(server)
        worker.wait_until_it_says("weight 3")
        server.process.send_signal(signal.SIGKILL)
        # In the words of TensorFlow, where it finds out itself.
        assert worker.process.wait(DEADLINE_SECS) != 0
        assert "/job:ps/" in worker.complaints
    finally:
        for task in tasks:
            task.process.kill()
            task.process.wait()
