"""The same variables on the same parameter servers, whatever the runtime."""

from __future__ import annotations

import re
from typing import Any

import pytest

from compat.runtime.device_setter import describe_load, imbalance

# The variables are made in the order a [4, 4], b [2], c [8, 8], d [2], e [3], of float32.
ROUND_ROBIN = {"a": "ps 0", "b": "ps 1", "c": "ps 2", "d": "ps 0", "e": "ps 1"}
WORKER = dict.fromkeys("abcde", "worker 0")
CASES: dict[str, dict[str, str]] = {
    "round_robin": ROUND_ROBIN,
    "own_spec": ROUND_ROBIN,
    "tensorflows_spec": ROUND_ROBIN,
    "two_tasks": {"a": "ps 0", "b": "ps 1", "c": "ps 0", "d": "ps 1", "e": "ps 0"},
    "one_device": dict.fromkeys("abcde", "ps 0"),  # The task is the strategy's to say.
    "greedy": {"a": "ps 0", "b": "ps 1", "c": "ps 2", "d": "ps 1", "e": "ps 1"},
    # By MD5 of "random/a_5" and so on, as contrib's.
    "random": {"a": "ps 0", "b": "ps 1", "c": "ps 0", "d": "ps 2", "e": "ps 0"},
    "no_ps_ops": WORKER,
    "other_ps_ops": WORKER,
    "by_name": dict.fromkeys("abcde", "ps 2"),
    # The setter counts the variable that the program has placed by itself, too.
    "nested": {"first": "ps 0", "second": "ps 1", "third": "ps 2", "fourth": "ps 0"},
}
MODEL = {"a": "ps 0", "b": "ps 1", "c": "ps 2"}


@pytest.mark.parametrize("case", sorted(CASES))
def test_each_variable_is_where_the_setter_says(placed: Any, case: str) -> None:
    assert placed[case] == CASES[case]


def test_momentum_lives_beside_its_variable(placed: Any) -> None:
    slots = {f"momentum/{name}/Momentum": ps for name, ps in MODEL.items()}
    assert placed["momentum"] == {**MODEL, **slots}


def test_moments_live_beside_their_variable(placed: Any) -> None:
    first = {f"adam/{name}/Adam": ps for name, ps in MODEL.items()}
    second = {f"adam/{name}/Adam_1": ps for name, ps in MODEL.items()}
    powers = {"beta1_power": "ps 0", "beta2_power": "ps 0"}
    assert placed["adam"] == {**MODEL, **first, **second, **powers}


def test_the_load_of_a_variable_is_its_bytes(placed: Any) -> None:
    assert placed["sizes"]["matrix"] == 3 * 4 * 8
    assert placed["sizes"]["accumulator"] == 0  # Of SyncReplicasOptimizer.


def test_what_has_no_load_is_said(placed: Any) -> None:
    assert placed["sizes"]["input"] == (
        "operation input of type Placeholder makes no variable; pass one"
    )
    unknown = r"variable open has shape \((None|\?), 2\); its size is not known"
    assert re.match(unknown, placed["sizes"]["open"])


def test_load_is_counted_by_server(placed: Any) -> None:
    """Of a, of b, d and e, and of c."""
    assert placed["stored"] == [4 * 16, 4 * (2 + 2 + 3), 4 * 64]


@pytest.mark.parametrize(
    ("stored", "start"),
    [
        ([30_000_000, 10_000_000, 10_000_000], "WARNING: ps 0 stores 30.0 MB, 1.8 times the mean"),
        ([24_000_000, 10_000_000, 14_000_000], ""),  # Exactly 1.5 times.
        ([9_000_000, 0], ""),  # Too little to matter.
        ([0], ""),
    ],
)
def test_imbalance_is_a_warning(stored: list[int], start: str) -> None:
    found = imbalance(stored)
    assert found.startswith(start)
    assert bool(found) == bool(start)


def test_load_is_described_in_one_line() -> None:
    assert describe_load([1_200_000, 0]) == "stored: ps 0 1.2 MB, ps 1 0.0 MB"
