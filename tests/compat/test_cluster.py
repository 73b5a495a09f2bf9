from __future__ import annotations

import pytest

from compat.cluster.environment import cluster_from_hosts, parse_cluster_spec
from compat.cluster.spec import ClusterSpec
from compat.errors import UserError

EXPECTED = ClusterSpec({"ps": ["h0:2222"], "worker": ["h1:2222", "h2:2222"]})


@pytest.mark.parametrize(
    ("ps_hosts", "worker_hosts"),
    [
        ("h0:2222", "h1:2222,h2:2222"),
        (" h0:2222 ", "h1:2222 , h2:2222\n"),
        (["h0:2222"], ["h1:2222", "h2:2222"]),
        ("h0:2222", ("h1:2222", "h2:2222")),
    ],
)
def test_hosts(ps_hosts: str | list[str], worker_hosts: str | list[str]) -> None:
    assert cluster_from_hosts(ps_hosts, worker_hosts) == EXPECTED


@pytest.mark.parametrize(
    ("ps_hosts", "worker_hosts", "sentence"),
    [
        ("", "h:1", "--ps_hosts is empty; write --ps_hosts=host:port,host:port$"),
        ("h:1", " ", "--worker_hosts is empty; write --worker_hosts=host:port,host:port$"),
        ("h:1", [], "--worker_hosts is empty"),
        ("h:1,", "h:2", "/job:ps/task:1: address '' is empty"),
        ("h:1", "h:2,,h:3", "/job:worker/task:1: address '' is empty"),
        ("h:1", "h:2;h:3", "/job:worker/task:0: host 'h:2;h' of 'h:2;h:3' has a colon"),
        ("h:1", "h:1", "address 'h:1' is given to both /job:ps/task:0 and /job:worker/task:0"),
    ],
)
def test_malformed_hosts(ps_hosts: str, worker_hosts: str, sentence: str) -> None:
    with pytest.raises(UserError, match="^" + sentence):
        cluster_from_hosts(ps_hosts, worker_hosts)


@pytest.mark.parametrize(
    "text",
    ["worker|h1:2222;h2:2222,ps|h0:2222", "ps|h0:2222 , worker|h1:2222; h2:2222"],
)
def test_the_old_servers_string(text: str) -> None:
    assert parse_cluster_spec(text) == EXPECTED


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", r"'' in cluster spec '' has no '\|'; write worker\|host:port"),
        ("worker:h1:2222", r"'worker:h1:2222' in cluster spec .* has no '\|'"),
        ("ps|h0:1,worker|h1:1,h2:1", r"'h2:1' in cluster spec .* has no '\|'"),
        ("ps|h0:1,ps|h1:1", "job 'ps' is twice in cluster spec .*; join its hosts by ';'"),
        ("ps|", "/job:ps/task:0: address '' is empty"),
        ("ps|h0:1;", "/job:ps/task:1: address '' is empty"),
        ("|h0:1", "job name '' is malformed"),
        ("ps|h0:1,worker|h0:1", "address 'h0:1' is given to both"),
        ("ps|h0|h1:1", "/job:ps/task:0: host 'h0|h1' of .* is not a host name"),
    ],
)
def test_malformed_string(text: str, sentence: str) -> None:
    with pytest.raises(UserError, match="^" + sentence):
        parse_cluster_spec(text)
