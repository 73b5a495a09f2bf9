from __future__ import annotations

import pytest

from compat.cluster.address import split_address
from compat.errors import PeerError, UserError, unless_usable


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("localhost:2222", "localhost", 2222),
        ("pc-01.example.org:1", "pc-01.example.org", 1),
        ("ps_0:65535", "ps_0", 65535),  # as compose names services
        ("tf-job-ps-0.default.svc:2222", "tf-job-ps-0.default.svc", 2222),
        ("10.0.0.7:2222", "10.0.0.7", 2222),
        ("[::1]:2222", "::1", 2222),
        ("[FE80:0::7]:2222", "fe80::7", 2222),
    ],
)
def test_host_and_port(address: str, host: str, port: int) -> None:
    assert split_address(address) == (host, port)


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("", "address '' is empty; write host:port"),
        ("  ", "address '  ' is empty"),
        (None, "address None is not text"),
        (2222, "address 2222 is not text"),
        ("localhost", "address 'localhost' has no port; write host:port, as in localhost:2222"),
        ("[::1]", r"address '\[::1\]' has no port"),
        ("localhost:", "port '' of 'localhost:' is not a number; use one from 1 to 65535"),
        ("localhost:http", "port 'http' of 'localhost:http' is not a number"),
        ("localhost:-1", "port '-1' of .* is not a number"),
        ("localhost:+1", r"port '\+1' of .* is not a number"),
        ("localhost:1_0", "port '1_0' of .* is not a number"),
        ("localhost: 22", "port ' 22' of .* is not a number"),
        ("localhost:٣", "port '٣' of .* is not a number"),
        ("localhost:" + "9" * 5000, "port '9+' of .* is not a number"),
        ("localhost:0", "port 0 of 'localhost:0' is out of range; use one from 1 to 65535"),
        ("localhost:65536", "port 65536 of 'localhost:65536' is out of range"),
        ("::1:2222", r"host '::1' of '::1:2222' has a colon; write IPv6 as \[::1\]:2222"),
        ("[::g]:2222", r"host '\[::g\]' of .* is not an IP address"),
        ("10.0.0.256:2222", "host '10.0.0.256' of .* is not an IP address"),
        ("10.0.1:2222", "host '10.0.1' of .* is not an IP address"),
        (":2222", "host '' of ':2222' is not a host name"),
        ("-pc:2222", "host '-pc' of .* is not a host name"),
        ("my pc:2222", "host 'my pc' of .* is not a host name"),
        ("pc,other:2222", "host 'pc,other' of .* is not a host name"),
        ("http://pc:2222", "address 'http://pc:2222' is a URL; write host:port"),
        ("grpc://10.0.0.1:2222", "address .* is a URL"),
    ],
)
def test_malformed(address: str, sentence: str) -> None:
    with pytest.raises(UserError, match="^" + sentence) as caught:
        split_address(address)
    assert "\n" not in str(caught.value)


def test_exit_codes_are_permanent_for_users_and_retryable_for_peers() -> None:
    assert (UserError.exit_code, PeerError.exit_code) == (2, 138)


@pytest.mark.parametrize(("error", "why"), [(OSError("why"), "why"), (OSError(), "OSError")])
def test_an_error_without_a_number_says_why(error: OSError, why: str) -> None:
    with pytest.raises(UserError) as raised, unless_usable("it fails", "mend it"):
        raise error
    assert str(raised.value) == f"it fails ({why}); mend it"
