"""A^n + B^n, each power on a worker of its own, and one line for what goes wrong."""

from __future__ import annotations

import contextlib
import re
import runpy
import signal
from pathlib import Path
from typing import Any, Iterator

import numpy as np
import pytest

from compat.cluster import ports
from compat.cluster.liveness.monitor import Monitor, connection_checks

pytestmark = pytest.mark.once
refusals = runpy.run_path(str(Path(__file__).with_name("programs") / "refusals.py"))["refusals"]
MODULE = "experiments.classics.matpow"
SERVE = "compat"
CPU = "/device:CPU:0"


class Workers:
    """Two standalone servers, which stay up for all tests that only use them."""

    def __init__(self, start: Any) -> None:
        with contextlib.ExitStack() as reserved:
            places = [reserved.enter_context(ports.reserve()) for _ in range(2)]
            self.hosts = [place.address for place in places]
            self.spec = "--cluster_spec=worker|" + ";".join(self.hosts)
            self.servers = []
            for index, place in enumerate(places):
                task = ["serve", self.spec, "--job_name=worker", f"--task_id={index}"]
                env, pass_fds = place.pass_to_child()
                self.servers.append(start(*task, module=SERVE, env=env, pass_fds=pass_fds))
        Monitor(connection_checks(dict(zip("AB", self.hosts))), 150).wait()

    def end(self) -> None:
        for server in self.servers:
            server.end()


@pytest.fixture(scope="module")
def workers(start: Any) -> Iterator[Workers]:
    workers = Workers(start)
    yield workers
    workers.end()


def assert_computed(out: str, runtime: str, devices: list[str], n: int, size: int) -> None:
    """Checks all that is printed but the times."""
    lines = [re.sub(r"^\[client\] ", "", line) for line in out.splitlines()]
    assert f"runtime: {runtime}" in lines
    rows = dict(re.split(r"  +(?=/)", line) for line in lines if "/job:" in line and "  /" in line)
    a, b = (f"{name}/power_2 ... {name}/power_{n}" for name in "AB")
    assert rows == {a: devices[0], b: devices[1], "sum": devices[0]}
    verdict = rf"A\^{n} \+ B\^{n}, {size} x {size}: agrees with NumPy, relative error \S+"
    assert re.fullmatch(verdict, [line for line in lines if line.startswith("A^")][-1])
    times = [float(t) for t in re.findall(r"-node time: +(\S+) ms", out)]
    assert len(times) == len(set(devices))
    assert min(times) > 0


def test_one_process(start: Any, runtime: str) -> None:
    flags = ["--n=3", "--size=20", "--seed=7", f"--runtime={runtime}"]
    done = start(*flags, module=MODULE).wait()
    assert (done.code, done.err) == (0, "")
    assert_computed(done.out, runtime, [f"/job:localhost/replica:0/task:0{CPU}"] * 2, 3, 20)


WORKER_DEVICES = [f"/job:worker/replica:0/task:{index}{CPU}" for index in range(2)]


@pytest.mark.cluster
@pytest.mark.endings
def test_workers_that_run_already(
    start: Any, runtime: str, workers: Workers, tmp_path: Path
) -> None:
    np.save(str(tmp_path / "a.npy"), np.eye(7) * 2)
    files = [f"--matrix_a={tmp_path}/a.npy", "--n=5", f"--runtime={runtime}"]
    named = workers.spec if runtime == "legacy" else "--worker_hosts=" + ",".join(workers.hosts)
    done = start("--strategy=workers", named, *files, module=MODULE).wait()
    assert (done.code, done.err) == (0, "")
    assert_computed(done.out, runtime, WORKER_DEVICES, 5, 7)


@pytest.mark.cluster
@pytest.mark.slow
def test_workers_of_another_cluster(start: Any, workers: Workers) -> None:
    with ports.reserve() as other:
        flags = ["--strategy=workers", "--runtime=legacy", "--timeout=20"]
        flags.append(f"--worker_hosts={workers.hosts[0]},{other.address}")
        done = start(*flags, module=MODULE).wait()
    assert done.code == 138
    expected = f"no connection within 20 s to /job:worker/task:1 at {other.address}: refused"
    assert done.err.startswith(f"error: {expected}")
    assert done.err.count("\n") == 1


@pytest.mark.long
@pytest.mark.cluster
def test_workers_of_its_own_as_the_docs_show(start: Any, page: Any) -> None:
    shown = page("seeds/003-matpow.md")
    done = start(*shown.flags, module=MODULE).wait()
    assert (done.code, done.err) == (0, "")
    assert_computed(done.out, "legacy", WORKER_DEVICES, 4, 100)
    shown.assert_shows(done.out)
    assert done.left_running() == []


@pytest.mark.cluster
@pytest.mark.slow
def test_a_worker_that_is_silent_and_then_lost(start: Any, runtime: str) -> None:
    workers = Workers(start)
    workers.servers[1].send(signal.SIGSTOP)
    flags = ["--strategy=workers", workers.spec, f"--runtime={runtime}"]
    patient = start(*flags, "--timeout=150", module=MODULE)
    hasty = start(*flags, "--timeout=8", module=MODULE).wait()
    hosts = ";".join(workers.hosts)
    assert hasty.code == 138
    assert hasty.err.startswith(f"error: no result from the workers {hosts} within 8 s; check that")
    assert hasty.err.count("\n") == 1
    patient.wait_until_it_says("single-node time")
    workers.servers[1].send(signal.SIGKILL)
    assert patient.wait().code == 138
    assert patient.err.startswith(f"error: lost /job:worker/task:1 at {workers.hosts[1]}; start it")
    assert patient.err.count("\n") == 1
    workers.end()


PC = "--worker_hosts=pc-01:2500,pc-02:2501"
SPEC = "--cluster_spec=worker|pc-01:2500"


WRONG = [
    (["--n=0"], "--n=0 is too small; give 1 or more"),
    (["--size=0"], "--size=0 is too small; give 1 or more"),
    (["--seed=-1"], "--seed=-1 is too small; give 0 or more"),
    (["--timeout=0"], "--timeout=0 is out of range; give seconds above 0"),
    (["--strategy=ps"], "flag --strategy=ps: value should be one of <local|workers>"),
    ([PC], "--worker_hosts=pc-01:2500,pc-02:2501 names workers; add --strategy=workers"),
    (["--strategy=workers", PC, SPEC], "--worker_hosts and --cluster_spec both name the"),
    (["--strategy=workers", SPEC], f"{SPEC} lacks /job:worker/task:1, expected two workers"),
    (["--strategy=workers", "--worker_hosts=pc-01"], "/job:worker/task:0: address 'pc-01' has"),
    (["--matrix_a=none.npy"], "--matrix_a=none.npy cannot be read (No such file or directory)"),
    (
        ["--matrix_b=text.npy"],
        "--matrix_b=text.npy is not a .npy file with an array of numbers",
    ),
    (
        ["--matrix_b=objects.npy"],
        "--matrix_b=objects.npy is not a .npy file with an array of numbers",
    ),
    (["--matrix_a=wide.npy"], "--matrix_a=wide.npy has shape [2, 3], expected a square matrix"),
    (["--matrix_a=nan.npy"], "--matrix_a=nan.npy has elements that are not finite; replace"),
    (["--matrix_a=words.npy"], "--matrix_a=words.npy has elements of type <U1, expected real"),
    (["--matrix_a=3.npy", "--size=4"], "--matrix_a=3.npy has 3 rows and columns, expected 4"),
    (["--matrix_a=3.npy", "--matrix_b=2.npy"], "--matrix_b=2.npy has 2 rows and columns, exp"),
    (["--matrix_a=3.npy", "--n=1000"], "--n=1000 is too large for these matrices, whose power"),
]


def test_wrong_input_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "text.npy").write_text("1 2\n3 4\n")
    np.save(str(tmp_path / "objects.npy"), np.array([[None]]))
    np.save(str(tmp_path / "wide.npy"), np.zeros([2, 3]))
    np.save(str(tmp_path / "nan.npy"), np.array([[np.nan]]))
    np.save(str(tmp_path / "words.npy"), np.array([["a"]]))
    np.save(str(tmp_path / "3.npy"), np.full([3, 3], 9.0))
    np.save(str(tmp_path / "2.npy"), np.eye(2))
    lines = refusals(MODULE, [(flags, {}) for flags, _ in WRONG], tmp_path)
    for (_, sentence), line in zip(WRONG, lines):
        assert line.startswith(sentence)
