"""Tasks find out whose servers they meet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat.cluster.liveness import identity
from compat.cluster.spec import ClusterSpec

if TYPE_CHECKING:
    from tests.conftest import RunProgram

pytestmark = pytest.mark.once

CLUSTER = {"ps": ["h0:1"], "worker": ["h1:1", "h2:1"]}


@pytest.fixture(scope="module")
def reasons(run_program: RunProgram, programs: Path) -> Any:
    return run_program(programs / "membership.py")


@pytest.mark.long
@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("member", None),
        ("undeclared", "other cluster"),
        ("other token", "other cluster"),
        ("other hosts", "other cluster"),
        ("other task", "other cluster"),
        ("other training", "other cluster"),
        ("no TensorFlow", "not TensorFlow"),
        ("nobody", "refused"),
        ("meeting", None),
        ("joins the others", None),
        ("has met", None),
        ("other meeting", "other cluster"),
        ("other has met", "other cluster"),
        ("no word", "no answer"),
        ("not met", "no answer"),
        ("nobody meets", "refused"),
    ],
)
def test_an_address_is_taken_for(reasons: Any, case: str, reason: str | None) -> None:
    assert reasons[case] == reason


def test_a_chief_is_recognised(reasons: Any) -> None:
    """A mere coordinator without a note is believed to be about to get it."""
    assert reasons["recognised"] == {
        "legacy": ["refused", "no answer", "other cluster", None, "other cluster"],
        "modern": ["refused", "no answer", None, None, "other cluster"],
    }


def test_a_chief_that_was_recognised_may_be_silent(reasons: Any) -> None:
    """Not so who comes after it was away."""
    assert reasons["stopped"] == [None, None, "refused", "no answer"]


def test_a_training_is_its_cluster_and_its_token() -> None:
    mine = identity.fingerprint(ClusterSpec(CLUSTER), "")
    assert mine == identity.fingerprint(ClusterSpec(dict(reversed(list(CLUSTER.items())))), "")
    assert mine != identity.fingerprint(ClusterSpec(CLUSTER), "token")
    assert mine != identity.fingerprint(ClusterSpec({**CLUSTER, "ps": ["h0:2"]}), "")
    assert mine != identity.fingerprint(ClusterSpec({**CLUSTER, "worker": ["h2:1", "h1:1"]}), "")
