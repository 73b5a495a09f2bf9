"""The batch script, with real tasks on this machine; its `srun` and `scontrol` stand in for Slurm.

They are what the script finds on a cluster: `scontrol` lists the nodes, `srun` starts a task a
node, numbers them, and returns the highest of their exit codes.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from tests.conftest import PACKAGES

pytestmark = pytest.mark.once
DEADLINE_SECS = 240
SCRIPT = Path(__file__).resolve().parents[2] / "deploy" / "slurm.sbatch"
SCONTROL = r"""#!/bin/bash
[[ "$1 $2" == "show hostnames" ]] && tr ' ' '\n' <<<"$3"
"""
SRUN = r"""#!/bin/bash
while [[ $1 == --* ]]; do
    [[ $1 == --ntasks=* ]] && export SLURM_NTASKS=${WRONG_NTASKS:-${1#*=}} started=${1#*=}
    shift
done
tasks=()
for ((i = 0; i < started; i++)); do
    SLURM_PROCID=$i "$@" > >(sed "s/^/$i: /") 2>&1 &
    tasks+=($!)
done
highest=0
for task in "${tasks[@]}"; do
    wait "$task" || { code=$?; ((code > highest)) && highest=$code; }
done
exit "$highest"
"""


@pytest.fixture
def sbatch(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Runs the script as Slurm would on nodes of these names; returns its code and its output."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, text in (("scontrol", SCONTROL), ("srun", SRUN)):
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    started = []

    def run(nodes: str, *flags: str, **env: str) -> Any:
        kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        kept["PATH"] = f"{commands}{os.pathsep}{kept['PATH']}"
        if nodes:
            kept.update(SLURM_JOB_NODELIST=nodes, SLURM_JOB_ID="7")
        process = subprocess.Popen(
            ["bash", str(SCRIPT), *flags],
            cwd=str(tmp_path),
            env={**kept, "PYTHONPATH": PACKAGES, "PYTHON": sys.executable, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        started.append(process)
        output, _ = process.communicate(timeout=DEADLINE_SECS)
        return process.returncode, output.decode()

    yield run
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def free_ports(count: int) -> int:
    """Returns the first of some free ports that follow each other."""
    for first in range(20000, 32000, count):
        sockets = [socket.socket() for _ in range(count)]
        try:
            for i, probe in enumerate(sockets):
                probe.bind(("", first + i))
            return first
        except OSError:
            continue
        finally:
            for probe in sockets:
                probe.close()
    raise AssertionError("no ports are free")


def test_script_is_well_formed() -> None:
    subprocess.run(["bash", "-n", str(SCRIPT)], check=True, timeout=30)


def test_outside_of_slurm(sbatch: Callable[..., Any]) -> None:
    sentence = "error: SLURM_JOB_NODELIST is not set; submit this script with sbatch\n"
    assert sbatch("") == (2, sentence)


def test_one_node_is_too_few(sbatch: Callable[..., Any]) -> None:
    code, output = sbatch("node-1")
    assert code == 2
    assert "error: 1 node in 'node-1', expected a parameter server and workers; give" in output


@pytest.mark.cluster
@pytest.mark.slow
def test_nodes_train_together(sbatch: Callable[..., Any], tmp_path: Path) -> None:
    flags = ["--dataset=digits", "--max_steps=40", "--log_every=5"]
    port = free_ports(3)
    code, output = sbatch("127.0.0.1 127.0.0.1 127.0.0.1", *flags, PORT=str(port))
    assert code == 0, output
    assert f"0: /job:ps/task:0 serves at 127.0.0.1:{port} until training ends" in output
    assert "1: done" in output
    assert list((tmp_path / "runs" / "7").glob("model.ckpt-*"))


def test_number_of_tasks_has_to_be_that_of_nodes(sbatch: Callable[..., Any]) -> None:
    code, output = sbatch("a b c", "--dataset=digits", WRONG_NTASKS="2")
    assert code == 2
    sentence = "error: SLURM_NTASKS=2 contradicts --ps_hosts and --worker_hosts, which have 1 and 2"
    assert output.count(sentence) == 3
