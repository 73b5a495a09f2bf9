"""When a training logs, measures, saves and ends."""

from __future__ import annotations

import dataclasses

import pytest

from experiments.training.recording.schedule import Schedule, due

# 550 batches an epoch, as in the example of 2016.
ALONE = Schedule(
    batches_per_epoch=550, num_workers=1, total_steps=11000, steps_per_loop=1, log_every=100
)


def lines(schedule: Schedule, stride: int) -> list[tuple[int, int]]:
    """Returns all lines of a training whose chief sees every `stride`-th update, and the last."""
    seen = [*range(0, schedule.total_steps, stride), schedule.total_steps]
    found = [schedule.line(before, after) for before, after in zip(seen, seen[1:])]
    return [line for line in found if line is not None]


def test_lines_are_those_of_2016() -> None:
    in_an_epoch = (100, 200, 300, 400, 500, 550)
    expected = [(epoch, batch) for epoch in range(1, 21) for batch in in_an_epoch]
    assert lines(ALONE, stride=1) == expected


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (98, 99, None),
        (99, 100, (1, 100)),
        (100, 101, None),
        (549, 550, (1, 550)),
        (550, 551, None),
        (649, 650, (2, 100)),
        # Only the last of several that are due.
        (0, 650, (2, 100)),
        (0, 11000, (20, 550)),
        # The end is past already: a worker was over it by an update.
        (11000, 11001, None),
    ],
)
def test_line(before: int, after: int, line: object) -> None:
    assert ALONE.line(before, after) == line


def test_lines_of_a_cluster_count_the_batches_of_one_worker() -> None:
    schedule = dataclasses.replace(ALONE, num_workers=2, total_steps=22000)
    assert lines(schedule, stride=1) == lines(ALONE, stride=1)
    assert schedule.line(199, 200) == (1, 100)
    assert schedule.line(197, 199) is None


@pytest.mark.parametrize("stride", [2, 3, 7, 49])
def test_who_sees_few_updates_misses_no_line(stride: int) -> None:
    assert lines(ALONE, stride) == lines(ALONE, stride=1)


@pytest.mark.parametrize(
    ("total_steps", "last"), [(1, (1, 1)), (120, (1, 120)), (551, (2, 1)), (1100, (2, 550))]
)
def test_there_is_a_line_at_the_end_and_one_only(total_steps: int, last: tuple[int, int]) -> None:
    found = lines(dataclasses.replace(ALONE, total_steps=total_steps), stride=1)
    assert found[-1] == last
    assert found.count(last) == 1


def test_fewer_updates_than_workers_have_a_line() -> None:
    schedule = dataclasses.replace(ALONE, num_workers=4, total_steps=3)
    assert lines(schedule, stride=1) == [(1, 1)]


@pytest.mark.parametrize("num_workers", [1, 2, 3])
@pytest.mark.parametrize("steps_per_loop", [1, 50, 1000])
def test_loops_end_at_lines_and_at_the_end(num_workers: int, steps_per_loop: int) -> None:
    schedule = Schedule(
        batches_per_epoch=12,
        num_workers=num_workers,
        total_steps=100,
        steps_per_loop=steps_per_loop,
        log_every=5,
    )
    step, found = 0, []
    while step < schedule.total_steps:
        size = schedule.loop_size(step)
        assert 1 <= size <= steps_per_loop
        line = schedule.line(step, step + size)
        found += [line] if line else []
        step += size
    assert step == 100
    assert found == lines(schedule, stride=1)


def test_workers_that_count_for_themselves_share_what_is_left_and_end_together() -> None:
    schedule = Schedule(
        batches_per_epoch=1000,
        num_workers=2,
        total_steps=2000,
        steps_per_loop=20,
        log_every=50,
        num_loops=2,
    )
    sizes = [schedule.loop_size(step) for step in (0, 60, 66, 80, 99)]
    assert sizes == [20, 20, 15, 10, 5]
    sizes = [schedule.loop_size(step) for step in (1200, 1202, 1600, 1800, 1801, 1999)]
    assert sizes == [20, 15, 10, 5, 1, 1]


def test_steps_per_epoch() -> None:
    assert dataclasses.replace(ALONE, num_workers=3).steps_per_epoch == 1650


@pytest.mark.parametrize(
    ("every", "before", "after", "expected"),
    [
        (10, 0, 9, False),
        (10, 9, 10, True),
        (10, 10, 19, False),
        (10, 5, 35, True),
        (1, 7, 8, True),
        (1, 8, 8, False),
    ],
)
def test_due(every: int, before: int, after: int, expected: bool) -> None:
    assert due(every, before, after) is expected


@pytest.mark.parametrize(
    ("total_steps", "steps"), [(1, 1), (9, 1), (72, 7), (999, 99), (1000, 100), (3300, 100)]
)
def test_curves_of_a_short_training_have_ten_points(total_steps: int, steps: int) -> None:
    assert dataclasses.replace(ALONE, total_steps=total_steps).steps_per_point == steps
