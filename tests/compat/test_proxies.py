from __future__ import annotations

import pytest

from compat.cluster.proxies import bypass


@pytest.mark.parametrize(
    ("environ", "added"),
    [
        ({}, {}),
        ({"no_proxy": "a"}, {}),
        ({"http_proxy": ""}, {}),
        ({"PROXY": "p:1", "PATH": "/bin"}, {}),
        ({"http_proxy": "p:1"}, {"no_proxy": "h0,h1"}),
        ({"HTTPS_PROXY": "p:1"}, {"no_proxy": "h0,h1"}),
        ({"http_proxy": "p:1", "no_proxy": "h1,h0"}, {}),
        ({"grpc_proxy": "p:1", "no_proxy": "a,h1"}, {"no_proxy": "a,h1,h0"}),
        ({"all_proxy": "p:1", "NO_PROXY": "a"}, {"no_proxy": "a,h0,h1"}),
        ({"all_proxy": "p:1", "NO_PROXY": "h0,h1"}, {"no_proxy": "h0,h1"}),
        (
            {"http_proxy": "p:1", "no_proxy": "a", "NO_PROXY": "b", "no_grpc_proxy": "c"},
            {"no_proxy": "a,h0,h1", "no_grpc_proxy": "c,h0,h1"},
        ),
    ],
)
def test_hosts_are_reached_past_proxies(environ: dict[str, str], added: dict[str, str]) -> None:
    assert bypass(environ, ["h1", "h0"]) == added
