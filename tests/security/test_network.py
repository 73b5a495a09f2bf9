"""No cluster goes beyond this machine unless its user has said so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compat.cluster import access
from compat.cluster.environment import cluster_from_hosts
from compat.errors import UserError

DEADLINE_SECS = 60
CODE = Path(access.__file__).resolve().parents[1]
ONE_HERE = ["--job_name=worker", "--ps_hosts=pc-01.invalid:2222", "--worker_hosts=127.0.0.1:2223"]
TF_CONFIG = {
    "cluster": {"ps": ["127.0.0.1:2222"], "worker": ["127.0.0.1:2223", "pc-01.invalid:2222"]},
    "task": {"type": "worker", "index": 0},
}


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.8.9.1", "::1", "localhost", "LocalHost", "127.1"],  # The last by look-up.
)
def test_loopback(host: str) -> None:
    assert access.is_loopback(host)
    access.check_allowed([host], False)


@pytest.mark.parametrize(
    "host",
    ["192.0.2.1", "0.0.0.0", "::", "fe80::1%lo", "pc-01.invalid", "a" * 70, "", "127.0.0.1.x"],
)
def test_beyond_loopback(host: str) -> None:
    assert not access.is_loopback(host)
    with pytest.raises(UserError, match="is beyond loopback: .* add --allow_network"):
        access.check_allowed(["127.0.0.1", host], False)


def test_what_is_allowed_is_said_once_and_only_where_it_matters() -> None:
    said: list[str] = []
    access.check_allowed(["127.0.0.1", "localhost", "::1"], True, say=said.append)
    assert said == []
    access.check_allowed(["localhost", "pc-01.invalid", "pc-02.invalid"], True, say=said.append)
    assert [line.count("pc-01.invalid") for line in said] == [1]
    assert "no password and no encryption" in said[0]


def test_hosts_of_a_cluster() -> None:
    cluster = cluster_from_hosts("[::1]:1,h:2", "h:1,127.0.0.1:1")
    assert access.cluster_hosts(cluster) == ["::1", "h", "127.0.0.1"]


@pytest.mark.once
@pytest.mark.parametrize(
    ("command", "environment"),
    [
        (["experiments.mnist", "--strategy=ps", *ONE_HERE], {}),
        (["experiments.mnist", "--strategy=ps"], TF_CONFIG),
        (["experiments.classics.shared_queue", *ONE_HERE], {}),
        (["experiments.classics.shared_queue"], TF_CONFIG),
        (
            ["experiments.classics.matpow", "--strategy=workers"]
            + ["--worker_hosts=127.0.0.1:2222,pc-01.invalid:2222"],
            {},
        ),
        (
            ["compat", "serve", "--job_name=worker"]
            + ["--cluster_spec=worker|127.0.0.1:2222,ps|pc-01.invalid:2222"],
            {},
        ),
    ],
)
def test_commands_are_refused_in_a_line(
    command: list[str], environment: dict[str, object], tmp_path: Path
) -> None:
    env = {**os.environ, "PYTHONPATH": str(CODE)}
    env.pop("TF_CONFIG", None)
    if environment:
        env["TF_CONFIG"] = json.dumps(environment)
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=str(tmp_path),
        env=env,
        capture_output=True,
        timeout=DEADLINE_SECS,
    )
    assert done.returncode == UserError.exit_code
    assert done.stdout == b""
    error = done.stderr.decode()
    assert error.startswith("error: host pc-01.invalid is beyond loopback: "), error
    assert error.endswith("add --allow_network (docs/security.md)\n")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
