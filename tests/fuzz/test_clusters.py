"""Clusters, however they are written down."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compat.cluster import ports
from compat.cluster.address import split_address
from compat.cluster.environment import (
    check_agreement,
    cluster_from_hosts,
    cluster_from_tf_config,
    parse_cluster_spec,
)
from compat.cluster.roles import role
from compat.cluster.spec import ClusterSpec, Task, checked_cluster
from compat.scripts.clusters import addresses, inherited, tasks
from tests.fuzz.conftest import attempt, mutated, times, words

pytestmark = pytest.mark.once

SPEC = "worker|h1:2500;h2:2501,ps|h3:2222"
HOSTS = words("pc-01:2222,pc-02:2222", "[::1]:2222, 10.0.0.7:1", tokens=("[fe80::1%lo]:1", "::"))
CONFIG = {
    "cluster": {"chief": ["h:1"], "ps": ["h0:2222"], "worker": ["h1:2222", "h2:2222"]},
    "task": {"type": "worker", "index": 0},
    "environment": "cloud",
}
DEEP = '{"cluster": {"ps": 1}, "task": {"type": "ps", "index": 0}}'
TOKENS = [b'"evaluator"', b'"master"', b"{}", b"[]", b"NaN", b"1e999", b"-1", b"null", b"\\ud800"]
NAMES = st.sampled_from(["cluster", "task", "type", "index", "ps", "worker", "chief", "évaluator"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


def assert_is_a_cluster(found: Any, any_port: bool = False) -> None:
    """Checks that what was taken is one that TensorFlow can take; port 0 is any free one."""
    for job, hosts in found.as_dict().items():
        for address in hosts if isinstance(hosts, list) else hosts.values():
            host, port = split_address(address, any_port=any_port)
            assert address.isprintable(), address
            assert host and (0 if any_port else 1) <= port <= 65535
        attempt(role, Task(job, 0), found, "legacy")


def tried(*call: Any) -> Any:
    found = attempt(*call)
    if isinstance(found, ClusterSpec):
        assert_is_a_cluster(found)
    return found


@times(5)
@given(words("localhost:2222", "[::1]:2222", "10.0.0.7:1", tokens=("%", "::", "65536", ".")))
@example("[::1%\n]:1")
def test_addresses(text: str) -> None:
    found = attempt(split_address, text)
    if isinstance(found, tuple):
        assert text.isprintable()
        assert found[0].strip() == found[0] != ""


@times(3)
@given(st.none() | HOSTS | st.lists(HOSTS | JSON, max_size=3), HOSTS)
def test_lists_of_hosts(ps: Any, workers: Any) -> None:
    tried(cluster_from_hosts, ps, workers)


@times(3)
@given(words(SPEC, tokens=("|", ";", "worker|")))
def test_strings(text: str) -> None:
    tried(parse_cluster_spec, text)


@times(3)
@given(JSON | st.dictionaries(NAMES | JSON.filter(lambda v: not isinstance(v, (dict, list))), JSON))
def test_dictionaries(jobs: Any) -> None:
    attempt(ClusterSpec, jobs)
    found = attempt(checked_cluster, jobs)
    if isinstance(found, ClusterSpec):
        assert_is_a_cluster(found, any_port=True)


@times(3)
@given(
    st.one_of(
        mutated(json.dumps(CONFIG).encode(), tokens=TOKENS).map(
            lambda raw: raw.decode("utf-8", "surrogateescape")
        ),
        JSON.map(json.dumps),
        st.fixed_dictionaries(
            {"cluster": st.dictionaries(NAMES, st.lists(HOSTS, max_size=3) | JSON), "task": JSON}
        ).map(json.dumps),
        # Depths round those at which Python gives up to read, and those at which it does to write.
        st.integers(1, 1200).map(lambda depth: DEEP.replace("1", "[" * depth + "]" * depth)),
    )
)
@example("[" * 100_000)
def test_tf_config(text: str) -> None:
    found = attempt(cluster_from_tf_config, text)
    if isinstance(found, tuple):
        assert_is_a_cluster(found[0])
        environ = {"TF_CONFIG": text}
        attempt(check_agreement, *found, environ)
    # What `compat run` does before the script sees it.
    attempt(addresses.mapped_tf_config, text)


NUMBERS = words("0", "1", "3", tokens=("-", "9" * 5000))


@given(NUMBERS, NUMBERS, words("ps,worker"))
@example("²", "3", "ps,worker")
@example("1" * 5000, "3", "ps,worker")
def test_numbers_of_slurm(number: str, count: str, order: str) -> None:
    spec = ClusterSpec({"ps": ["h0:1"], "worker": ["h1:1", "h2:1"]})
    environ = {"SLURM_TASKS_ARE": order, "SLURM_PROCID": number, "SLURM_NTASKS": count}
    attempt(check_agreement, spec, Task("worker", 0), environ)


@times(3)
@given(words("ps=1,worker=3", tokens=("²", "9" * 5000, "٣")))
@example("ps=²")
@example("worker=" + "9" * 5000)
@example("worker=1000000000")
def test_numbers_of_tasks(text: str) -> None:
    found = attempt(tasks.parse, text)
    if isinstance(found, dict):
        assert min(found.values()) >= 1


@times(3)
@given(words("pc-01:2222=127.0.0.1:5001,pc-02:2222=h:1", tokens=("grpc://", "99999", "٣")))
@example("pc-01:2222=pc-02:99999")
@example("pc-01:2222=pc-02:٣")
def test_hosts_that_are_elsewhere(text: str) -> None:
    found = attempt(addresses.parse, text)
    if isinstance(found, dict):
        for new in found.values():
            assert isinstance(attempt(split_address, new), tuple), new


@pytest.fixture(scope="module")
def file_of_ports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file by which the processes of a run agree on ports."""
    return Path(tmp_path_factory.mktemp("ports") / "ports.json")


@given(mutated(b'{"pc-01:2222": "127.0.0.1:5001"}', tokens=[b"[]", b"3", b"\xff", b"[" * 99_999]))
@example(b"[]")
@example(b'{"pc-02:2222": {}}')
@example(b"[" * 99_999)
@example(b'{"pc-02:2222": "no address"}')
def test_file_of_agreed_ports(file_of_ports: Path, raw: bytes) -> None:
    file_of_ports.write_bytes(raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(inherited.PORTS, str(file_of_ports))
        found = attempt(addresses.mapped, "pc-02:2222")
    if isinstance(found, str):
        assert isinstance(attempt(split_address, found), tuple), found
        assert json.loads(file_of_ports.read_text("utf-8"))["pc-02:2222"] == found
    else:
        assert file_of_ports.read_bytes() == raw


@given(words("20001:5,20002:6", tokens=(":", "9" * 5000)))
@example("a:b")
def test_reserved_ports(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPAT_RESERVED_PORTS", text)
        attempt(ports.release_inherited, 1)
        os.environ.pop("COMPAT_RESERVED_PORTS", None)
