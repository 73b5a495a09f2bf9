"""The tracker against servers that answer, that are dead, that hang and that come back."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import pytest
from mlflow.tracking import MlflowClient

from compat.tracking import Tracker
from compat.tracking.mlflow import spool
from compat.tracking.mlflow.learning_curve import FILE as CURVE
from compat.tracking.mlflow.system_metrics import sampled
from tests.compat.tracking.conftest import Relay

pytestmark = [pytest.mark.once, pytest.mark.long]


def tracker(logdir, said, uri, **options):
    settings = {"experiment_name": "mnist", "run_name": "r", "say": said.append}
    return Tracker(logdir, tracking_uri=uri, **dict(settings, **options))


def run_id(logdir):
    return pathlib.Path(logdir, "mlflow_run_id").read_text().split()[0]


def history(client, logdir, name):
    found = client.get_metric_history(run_id(logdir), name)
    return sorted((m.step, m.value, m.timestamp) for m in found)


def recorded(logdir):
    """Returns (step, value, time) of every cost in the spool."""
    records = [r for r, _ in spool.read(logdir) if r["kind"] == "metrics"]
    return [(r["step"], r["values"]["cost"], r["time"]) for r in records if "cost" in r["values"]]


def test_a_dead_server_costs_no_step_and_the_command_sends_the_rest(
    logdir, said, closed_port, mlflow_server, wait_for
):
    writer = tracker(logdir, said, f"http://127.0.0.1:{closed_port}", patience=6.0)
    began = time.monotonic()
    for step in range(1, 10001):
        writer.scalars(step, {"cost": 1.0 / step})
    assert time.monotonic() - began < 60.0  # No second for any of them.
    log = pathlib.Path(logdir, "tracking.log")
    wait_for(lambda: "not delivered, will try again" in log.read_text(), "failed attempt")
    began = time.monotonic()
    writer.close("KILLED")
    assert time.monotonic() - began < 90.0
    waiting, line = said
    assert waiting == "MLflow: the rest is being sent, 10002 records"
    assert line.startswith(f"MLflow: 10002 records were not delivered and wait in {logdir}/")

    command = re.search(r"python (-m .*)$", line).group(1)
    assert command.endswith(f"--tracking_uri=http://127.0.0.1:{closed_port}")
    relay = Relay(closed_port, mlflow_server)
    done = subprocess.run(
        [sys.executable, *shlex.split(command)], timeout=200, stdout=subprocess.PIPE,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))),
    )  # fmt: skip
    relay.close()
    assert done.returncode == 0, done.stdout
    client = MlflowClient(tracking_uri=mlflow_server)
    assert client.get_run(run_id(logdir)).info.status == "KILLED"
    assert os.path.exists(os.path.join(logdir, CURVE))  # By whichever of the two had the time.
    assert spool.pending(logdir) == 0
    assert recorded(logdir)[:1000] == history(client, logdir, "cost")[:1000]
    assert client.get_metric_history(run_id(logdir), "cost")[-1].step == 10000


def test_a_server_that_hangs_is_waited_for_no_longer_than_the_patience(logdir, said, hanging_port):
    writer = tracker(logdir, said, f"http://me:hush@127.0.0.1:{hanging_port}", patience=3.0)
    writer.scalars(1, {"cost": 1.0})
    began = time.monotonic()
    writer.close()
    assert time.monotonic() - began < 90.0
    _, line = said
    assert line.endswith(", with the tracking URI and its password in MLFLOW_TRACKING_URI")
    assert "hush" not in line
    for name in os.listdir(logdir):
        assert b"hush" not in pathlib.Path(logdir, name).read_bytes(), name


def test_the_sender_ends_by_itself_when_the_trainer_is_killed_and_the_server_hangs(
    logdir, hanging_port, python, wait_for
):
    source = (
        "import sys, time\n"
        "from compat.tracking import Tracker\n"
        "writer = Tracker(sys.argv[1], tracking_uri=sys.argv[2], experiment_name='e',\n"
        "                 run_name=None, patience=4)\n"
        "print(writer._sender.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    trainer = python(source, logdir, f"http://127.0.0.1:{hanging_port}")
    sender = int(trainer.stdout.readline())
    trainer.kill()
    trainer.wait(60)
    cmdline = pathlib.Path(f"/proc/{sender}/cmdline")
    wait_for(lambda: not cmdline.exists() or not cmdline.read_bytes(), "end of the sender")


@pytest.mark.timeout(600)  # It waits for a server, a run and its delivery.
def test_a_server_that_comes_back_gets_everything_at_its_time(
    logdir, said, closed_port, mlflow_server, wait_for, monkeypatch
):
    # Room for a machine that is busy: this is about what arrives.
    writer = tracker(logdir, said, f"http://127.0.0.1:{closed_port}", patience=150.0)
    writer.params({"batch_size": 100})
    writer.scalars(1, {"cost": 3.0})
    log = pathlib.Path(logdir, "tracking.log")
    wait_for(lambda: "not delivered, will try again" in log.read_text(), "failed attempt")
    relay = Relay(closed_port, mlflow_server)
    came_back = int(time.time() * 1000)
    wait_for(lambda: os.path.exists(os.path.join(logdir, "mlflow_run_id")), "run", 90)
    for step in range(2, 1202):
        writer.scalars(step, {"cost": 1.0 / step})
    writer.scalars(2000, {"bad": float("nan"), "up": float("inf")})
    checkpoint = pathlib.Path(logdir, "model.ckpt-3.index")
    checkpoint.write_text("weights")
    writer.artifact(str(checkpoint), folder="checkpoint")
    writer.close()
    relay.close()
    assert [line for line in said if "is being sent" not in line] == []  # On a busy machine.
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow_server)  # what MLflow 1 lists artifacts from
    client = MlflowClient(tracking_uri=mlflow_server)
    found = history(client, logdir, "cost")
    assert len(found) == 1201
    assert found == recorded(logdir)
    assert found[0][2] <= came_back <= found[1][2]
    assert len(history(client, logdir, "bad")) == len(history(client, logdir, "up")) == 1
    run = client.get_run(run_id(logdir))
    assert (run.info.status, run.data.params) == ("FINISHED", {"batch_size": "100"})
    names = {f.path for f in client.list_artifacts(run_id(logdir))}
    assert names == {"checkpoint", CURVE}
    (file,) = client.list_artifacts(run_id(logdir), "checkpoint")
    assert file.path == "checkpoint/model.ckpt-3.index"
    assert not os.path.exists(os.path.join(logdir, "mlflow-artifacts"))


def test_another_store_gets_a_run_of_its_own_from_the_beginning(logdir, said, mlflow_server):
    os.makedirs(logdir)
    earlier = spool.Spool(logdir)
    earlier.append("start", id="6f", experiment="mnist", run=None, time=5)
    earlier.append("metrics", step=1, time=6, values={"cost": 1.0})
    earlier.close()
    spool.set_delivered(logdir, os.path.getsize(os.path.join(logdir, spool.SPOOL)))
    pathlib.Path(logdir, "mlflow_run_id").write_text("0" * 32)
    writer = tracker(logdir, said, mlflow_server, patience=90.0)
    writer.scalars(2, {"cost": 0.5})
    writer.close()
    assert [line for line in said if "the rest is being sent" not in line] == []
    client = MlflowClient(tracking_uri=mlflow_server)
    assert history(client, logdir, "cost") == recorded(logdir)


def test_the_system_metrics_of_all_tasks_wait_for_a_server(
    logdir, said, closed_port, mlflow_server, python, wait_for
):
    writer = tracker(logdir, said, f"http://127.0.0.1:{closed_port}", patience=0.5)
    source = (
        "import sys\n"
        "from compat.tracking.mlflow.system_metrics import sampled\n"
        "with sampled(lambda: (sys.argv[1], 'ps-0'), every=0.05):\n"
        "    print(flush=True)\n"
        "    sys.stdin.readline()\n"
    )
    task = python(source, logdir)
    task.stdout.readline()
    with sampled(lambda: (logdir, "worker-0"), every=0.02):
        path = os.path.join(logdir, "system", "worker-0", "tracking.jsonl")
        wait_for(lambda: os.path.exists(path) and os.path.getsize(path), "sample")
    with sampled(lambda: (logdir, "worker-0"), every=600.0):  # Of a task that was restarted.
        pass
    with sampled(lambda: None, every=0.01):
        pass
    task.communicate(b"\n", timeout=60)
    writer.close()
    (line,) = said
    assert "not delivered" in line

    command = [sys.executable, "-m", "compat.tracking.mlflow.sender", logdir]
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    sent = [*command, f"--tracking_uri={mlflow_server}"]
    subprocess.run(sent, env=env, timeout=100, check=True)
    client = MlflowClient(tracking_uri=mlflow_server)
    found = client.get_run(run_id(logdir)).data.metrics
    values = {
        "cpu_utilization_percentage",
        "memory_usage_megabytes",
        "network_receive_megabytes",
        "network_transmit_megabytes",
        "system_memory_usage_percentage",
    }
    tasks = ("ps-0", "worker-0")
    assert set(found) == {f"workload/{name}/{value}" for name in tasks for value in values}
    assert 5 < found["workload/ps-0/memory_usage_megabytes"] < 100
    used = history(client, logdir, "workload/worker-0/memory_usage_megabytes")
    assert [step for step, _, _ in used] == list(range(len(used)))
    assert len(used) > 1
    assert sum(spool.pending(os.path.join(logdir, "system", name)) for name in tasks) == 0
