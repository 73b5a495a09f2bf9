"""Servers of old scripts: at hosts beyond this machine only if that is allowed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Iterator

import pytest

from compat.cluster import ports
from tests.compat.scripts.conftest import run_python

if TYPE_CHECKING:
    from tests.compat.scripts.conftest import RunScript

pytestmark = pytest.mark.cluster
# What listens on a port, by the table of the kernel: hexadecimal, state 0A.
SCRIPT = """
import tensorflow as tf

cluster = {{"ps": ["pc-01.invalid:2222"], "worker": ["{address}"]}}
server = tf.train.Server(cluster, job_name="worker", task_index=0)
port = ":%04X" % {port}
for table in ("tcp", "tcp6"):
    for line in open("/proc/net/" + table):
        if line.split()[1].endswith(port) and line.split()[3] == "0A":
            print("listens:", line.split()[1].split(":")[0].strip("0") or "everywhere")
"""


# Runs `python -m compat run` where Python can reach no host and look none up.
ALONE = """
import runpy, sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        raise SystemExit("asked for the network: %s %s" % (event, arguments))

sys.addaudithook(refuse)
sys.argv = ["compat", "run", "script.py"]
runpy.run_module("compat", run_name="__main__", alter_sys=True)
"""
COMPUTES = """
import tensorflow as tf
import tensorflow.contrib.slim as slim

with tf.Session() as session:
    print(session.run(tf.mul(6, 7)))
"""


@pytest.mark.long
@pytest.mark.once
@pytest.mark.skipif(sys.version_info < (3, 8), reason="Python 3.7 has no audit hooks")
def test_a_script_is_run_without_any_network(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(COMPUTES)
    done = run_python("-c", ALONE, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr


@pytest.fixture
def script() -> Iterator[str]:
    with ports.reserve() as reservation:
        assert reservation.share()
        yield SCRIPT.format(address=reservation.address, port=reservation.port)


@pytest.mark.once
def test_refused(run_script: RunScript, script: str) -> None:
    ran = run_script(script)
    assert (ran.code, ran.out) == (2, "")
    error = ran.err.splitlines()[-1]
    assert error.startswith("error: script.py:5: host pc-01.invalid is beyond loopback: ")
    assert "add --allow_network after `compat run`, or --local" in error


@pytest.mark.once
def test_allowed_is_said_and_tensorflow_listens_at_every_address(
    run_script: RunScript, script: str
) -> None:
    ran = run_script(script, options=("--allow_network",))
    assert ran.code == 0, ran.err
    said, *listens = ran.out.splitlines()
    assert said.startswith("compat: hosts such as pc-01.invalid are on a network: ")
    # No argument of the server changes that; docs/security.md says so.
    assert listens == ["listens: everywhere"]
