"""A task that fails is started again, if that may help, and so often as it is allowed to be."""

from __future__ import annotations

import io
import itertools
import time
from pathlib import Path

import pytest

from compat.processes.group import ProcessGroup
from compat.processes.restarts import Restarts
from tests.compat.processes.conftest import AWAIT_END, LEAVE_ID, python, run, runs

pytestmark = [pytest.mark.once, pytest.mark.timeout(120)]

SLEEP = "import time; time.sleep(60)"


@pytest.mark.parametrize("code", [137, 138, 139, 143])
def test_pauses_grow(code: int) -> None:
    restarts = Restarts(7)
    pauses = [restarts.pause("ps 0", code, ran=1) for _ in range(8)]
    assert pauses == [1, 2, 4, 8, 16, 30, 30, None]
    assert restarts.count("ps 0") == "7 of 7"
    assert restarts.pause("ps 1", code, ran=1) == 1


def test_pauses_do_not_grow_after_a_good_while() -> None:
    restarts = Restarts(7)
    assert [restarts.pause("ps 0", 137, ran) for ran in (1, 1, 10, 1, 9, 60)] == [1, 2, 1, 2, 4, 1]
    assert restarts.count("ps 0") == "6 of 7"


@pytest.mark.parametrize("code", [1, 2, 9, 127, 130])
def test_what_will_not_pass_is_not_tried_again(code: int) -> None:
    assert Restarts(7).pause("ps 0", code, ran=60) is None


def test_who_lost_another_task_spends_none() -> None:
    restarts = Restarts(2)
    for ps in ("ps 0", "ps 1", "ps 0", "ps 1"):
        assert restarts.pause(ps, 137, ran=60) == 1
        assert restarts.pause("worker 0", 138, ran=60) == 1
        assert restarts.count("worker 0") == "not counted: it lost another task"
    assert restarts.pause("worker 0", 137, ran=60) == 1
    assert restarts.count("worker 0") == "1 of 2"
    assert restarts.pause("ps 0", 137, ran=60) is None


def test_pauses_grow_for_who_lost_another_task_at_once() -> None:
    restarts = Restarts(3)
    pauses = [restarts.pause(name, 138, ran=1) for _ in range(3) for name in ("ps 0", "worker 0")]
    assert pauses == [1, 1, 2, 2, 4, 4]


def test_who_lost_another_task_though_all_live_is_given_up() -> None:
    restarts = Restarts(2)
    assert [restarts.pause("worker 0", 138, ran=60) for _ in range(3)] == [1, 1, None]


def test_tasks_that_lose_each_other_for_ever_are_given_up() -> None:
    """As on a network that is broken: each loss may be that of the one that has just failed."""
    for most in (0, 1, 5):
        restarts = Restarts(most)
        names = itertools.cycle(["ps 0", "worker 0", "worker 1"])
        pauses = [restarts.pause(name, 138, ran=60) for name in itertools.islice(names, 100)]
        assert pauses.index(None) == 3 * most


def test_a_failure_excuses_once_and_none_but_losses() -> None:
    restarts = Restarts(1)
    assert restarts.pause("ps 0", 137, ran=60) == 1
    assert [restarts.pause("worker 0", code, ran=60) for code in (138, 138, 138)] == [1, 1, None]
    assert [restarts.pause("worker 1", code, ran=60) for code in (143, 137)] == [1, None]


def test_who_is_beside_the_cluster_excuses_nobody() -> None:
    restarts = Restarts(1, beside=["evaluator 0"])
    assert restarts.pause("evaluator 0", 137, ran=60) == 1
    assert [restarts.pause("worker 0", 138, ran=60) for _ in range(2)] == [1, None]


def failing(code: str, times: int) -> str:
    """Returns a program that says its number, and does `code` as often as it is told."""
    return f"""
import os, signal, sys
open("tries", "a").write("x")
tries = len(open("tries").read())
print(tries, flush=True)
if tries <= {times}:
    {code}
"""


def test_what_is_retryable_is_tried_again() -> None:
    kill = "os.kill(os.getpid(), signal.SIGKILL)"
    began = time.monotonic()
    code, lines, said = run(
        [python("ps 0", SLEEP), python("w 0", failing(kill, 2))], max_restarts=3, servers=["ps 0"]
    )
    assert (code, [line for line in lines if line.startswith("[w 0]")]) == (
        0,
        ["[w 0] 1", "[w 0] 2", "[w 0] 3"],
    )
    assert said[:2] == [
        "w 0 failed with exit code 137 (SIGKILL); starting it again in 1 s (1 of 3)",
        "w 0 failed with exit code 137 (SIGKILL); starting it again in 2 s (2 of 3)",
    ]
    assert time.monotonic() - began >= 3.0


def test_who_was_given_up_stays_so_whoever_fails_later() -> None:
    """Only who is beside the cluster is given up while the others go on."""
    die = "import time; time.sleep(4.0); os.kill(os.getpid(), signal.SIGKILL)"
    code, _, said = run(
        [python("w 0", failing(die, 1)), python("evaluator 0", "raise SystemExit(138)")],
        beside=["evaluator 0"],
        max_restarts=1,
    )
    assert code == 0
    assert [line for line in said if line.startswith("evaluator 0")] == [
        "evaluator 0 failed with exit code 138; starting it again in 1 s (1 of 1)",
        "evaluator 0 failed with exit code 138; the others continue",
    ]


def test_who_is_seen_to_end_with_the_one_that_it_lost_spends_none() -> None:
    wait = f"""{LEAVE_ID}
    import time
    while not os.path.exists("go"): time.sleep(0.01)
    """
    lose = failing(wait + "sys.exit(138)", 1).replace("tries", "losses").replace("'id'", "'own'")
    die = failing(wait + "os.kill(os.getpid(), signal.SIGKILL)", 1)
    commands = [python("w 0", lose), python("ps 0", die)]
    commands.append(python("evaluator 0", "raise SystemExit(1)"))
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if "evaluator" in line:
            ids = [Path("id"), Path("own")]
            while not all(file.exists() and file.read_text() for file in ids):
                time.sleep(0.01)
            Path("go").touch()
            while any(runs(int(file.read_text())) for file in ids):
                time.sleep(0.01)

    with io.StringIO() as out, ProcessGroup(
        commands, beside=["evaluator 0"], max_restarts=1, say=say, out=out
    ) as group:
        assert group.wait() == 0
    assert said[1:] == [
        "ps 0 failed with exit code 137 (SIGKILL); starting it again in 1 s (1 of 1)",
        "w 0 failed with exit code 138; starting it again in 1 s "
        "(not counted: it lost another task)",
    ]


@pytest.mark.parametrize(
    ("end", "code", "tries"),
    [("sys.exit(138)", 138, 2), ("sys.exit(2)", 2, 1), ("sys.exit(1)", 1, 1)],
)
def test_what_does_not_pass_stops_all(end: str, code: int, tries: int) -> None:
    commands = [python("ps 0", SLEEP), python("w 0", failing(end, 9))]
    found, lines, said = run(commands, max_restarts=1)
    assert found == code
    assert len([line for line in lines if line.startswith("[w 0]")]) == tries
    assert said[-1] == f"w 0 failed with exit code {code}; stopping ps 0"


def test_who_waits_to_be_started_again_is_not_when_all_is_stopped() -> None:
    commands = [
        python("w 0", failing(f"{LEAVE_ID}; sys.exit(138)", 9)),
        python("w 1", f"{AWAIT_END}\nos._exit(2)"),
    ]
    code, lines, said = run(commands, max_restarts=9)
    assert code == 2
    assert [line for line in lines if line.startswith("[w 0]")] == ["[w 0] 1"]
    assert said == [
        "w 0 failed with exit code 138; starting it again in 1 s (1 of 9)",
        "w 1 failed with exit code 2; stopping w 0",
    ]


def test_who_has_made_its_part_is_named_when_another_starts_again() -> None:
    """Such as worker 1, which is at the last step when the chief is killed some steps before."""
    failing = f"""
{AWAIT_END}
first = not os.path.exists("again")
open("again", "w").close()
os._exit(137 if first else 0)
"""
    code, _, said = run(
        [python("worker 0", failing), python("worker 1", LEAVE_ID)],
        chief="worker 0",
        max_restarts=1,
    )
    assert code == 0
    assert said == [
        "worker 0 failed with exit code 137; starting it again in 1 s (1 of 1), without worker 1, "
        "which has made its part"
    ]
