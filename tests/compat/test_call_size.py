"""How many steps a call makes, by what was measured; see compat/runtime/modern/call_size.py."""

from __future__ import annotations

import pytest

from compat.runtime.modern.call_size import CallSizes, copies


def run(  # noqa: PLR0913
    steps: int,
    a_copy: float,
    a_call: float,
    a_step: float,
    most: int = 50,
    known: bool = True,
    warm_up: int = 0,
) -> tuple[float, list[int], list[float]]:
    """Makes the calls of a run; returns its seconds, what was built, and what was announced."""
    sizes, made, secs = CallSizes(warm_up), 0, 0.0
    built: list[int] = []
    announced: list[float] = []

    def announce(size: int, expected: float) -> None:
        built.append(size)
        announced.append(expected)

    first = True
    while made < steps:
        before = len(built)
        size = sizes.choose(min(most, steps - made), steps - made if known else None, announce)
        took = a_call + size * a_step
        if first or len(built) > before:
            took += a_copy * copies(size)
        first = False
        sizes.record(size, took)
        made, secs = made + size, secs + took
    assert made == steps
    return secs, built, announced


def test_a_short_run_of_a_step_that_takes_long_to_build_builds_nothing() -> None:
    """The one of an issue: 1,000 steps of a GAN, of which a call of fifty took 31 s to build."""
    secs, built, _ = run(1000, a_copy=0.6, a_call=0.001, a_step=0.001)
    assert built == []
    assert secs < 3


def test_a_long_run_builds_the_largest_call() -> None:
    secs, built, announced = run(10**6, a_copy=0.6, a_call=0.005, a_step=0.001)
    assert built == [5, 25, 50]
    assert secs < 1.2 * 10**6 * 0.001
    assert announced == pytest.approx([0.6 * 5, 0.6 * 25, 0.6 * 50], rel=0.05)


def test_calls_that_take_no_time_of_their_own_are_not_made_larger() -> None:
    """That of one size hides it, so the next may be tried; then it is known."""
    _, built, _ = run(5000, a_copy=2, a_call=0, a_step=0.1)
    assert built in ([], [5])


@pytest.mark.parametrize("steps", [100, 1000, 10**4, 10**5])
@pytest.mark.parametrize("a_copy", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("a_call", [0.0, 0.001, 0.01])
@pytest.mark.parametrize("a_step", [0.0005, 0.01])
def test_building_costs_less_than_a_quarter_of_calls_of_one(
    steps: int, a_copy: float, a_call: float, a_step: float
) -> None:
    secs, _, _ = run(steps, a_copy, a_call, a_step)
    assert secs <= 1.3 * (a_copy + steps * (a_call + a_step))


def test_a_run_of_unknown_length_may_last_as_long_again() -> None:
    assert run(200, 0.02, 0.01, 0.001, known=False)[1] != []
    assert run(200, 5.0, 0.01, 0.001, known=False)[1] == []


def test_more_steps_than_are_unrolled_are_a_loop_of_few_copies() -> None:
    assert copies(1000) < copies(50)
    assert run(10**6, 0.6, 0.005, 0.001, most=1000)[1] == [5, 25, 50, 1000]


def test_the_first_calls_on_workers_are_not_timed() -> None:
    sizes, announced = CallSizes(warm_up=4), []
    for secs in (3.0, *[9.0] * 4, *[0.001] * 20):  # Built here, then by the other workers.
        assert sizes.choose(50, 1000, lambda *said: announced.append(said)) == 1
        sizes.record(1, secs)
    assert sizes.choose(50, 1000, lambda *said: announced.append(said)) == 1
