"""The choice of a runtime, once a process, and what steps it takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compat.runtime.registry import RUNTIMES

if TYPE_CHECKING:
    from tests.conftest import RunProgram


@pytest.fixture(scope="module")
def chosen(run_program: RunProgram, programs: Path) -> Any:
    """The answers to a program that asks for the modern runtime, then for any."""
    return run_program(programs / "choice.py")


def test_these_tests_know_what_tensorflow_has(chosen: Any, runtimes: list[str]) -> None:
    assert chosen["has_modern"] == ("modern" in runtimes)


def test_the_modern_runtime_is_there_or_the_remedy_is_said(
    chosen: Any, runtimes: list[str]
) -> None:
    if "modern" in runtimes:
        assert chosen["modern"] == "modern"
    else:
        sentence = "runtime 'modern' needs TensorFlow 2.4 or later, this is [0-9.]+; "
        remedy = "use --runtime=legacy or a newer TensorFlow"
        assert re.fullmatch(sentence + remedy, chosen["modern"])


def test_auto_is_the_newest_there_is(chosen: Any, runtimes: list[str]) -> None:
    assert chosen["auto"] == runtimes[-1]


def test_a_choice_starts_no_thread(chosen: Any) -> None:
    """What is forked while a thread of TensorFlow begins may wait for it for ever."""
    assert chosen["threads"] <= 0


def test_tensors_and_variables_are_keys_as_in_tensorflow_1(chosen: Any) -> None:
    assert chosen["keys"] == [1, 1]


def test_forked_tasks_draw_numbers_of_their_own(chosen: Any) -> None:
    """They go on with what TensorFlow drew in their parent."""
    assert len({*chosen["drawn"]}) == 3


def test_without_eager_execution_a_program_is_a_graph_on_the_modern_runtime_too(
    run_program: RunProgram, programs: Path, runtimes: list[str]
) -> None:
    """Its loops have no devices of tasks that a session of this process does not have."""
    found = run_program(programs / "choice.py", without_eager=True)
    if "modern" in runtimes:
        assert (found["modern"], found["sum"]) == ("modern", 3.0)
    else:
        assert "TensorFlow 2.4" in found["modern"]


def test_a_choice_holds(ran: Any, runtime: str) -> None:
    assert ran["choices"]["same"]
    assert ran["choices"]["auto"] == runtime
    assert not ran["choices"]["eager"]


def test_a_cluster_beyond_loopback_has_to_be_allowed(ran: Any) -> None:
    said = ran["choices"]["network"]
    assert said.startswith(
        "host 0.0.0.0 is beyond loopback: servers of TensorFlow have no password"
    )
    assert said.endswith("give compat.Server allow_network=True (docs/security.md)")


def test_a_process_has_one_runtime(ran: Any, runtime: str) -> None:
    other = {"legacy": "modern", "modern": "legacy"}[runtime]
    for where in ("other", "server"):
        assert ran["choices"][where] == (
            f"runtime {other!r} was asked for in a process that already uses {runtime!r}; "
            "start a process of its own for it"
        )


def test_an_unknown_runtime(ran: Any) -> None:
    names = ", ".join(["auto", *RUNTIMES])
    assert ran["choices"]["unknown"] == f"runtime 'turbo' is unknown; choose one of {names}"


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("list", "a step returned list; return a dict of tensors by name"),
        ("object", "value 'cost' of a step is object; return a tensor, a number or an operation"),
        ("nothing", "a step returned no value; return at least one tensor by name"),
        ("none", "a step returned no value; return at least one tensor by name"),
    ],
)
def test_a_function_that_is_no_step(ran: Any, case: str, sentence: str) -> None:
    assert ran["bad_steps"][case] == sentence


def test_values_of_a_step_are_its_scalars_and_the_global_step(ran: Any) -> None:
    assert ran["names"] == [["global_step", "large", "seen"], ["global_step", "sum"]]


def test_a_step_has_a_graph_to_show(ran: Any) -> None:
    assert ran["nodes"] == [True, True]


def test_there_is_one_global_step(ran: Any) -> None:
    same, dtype, shape, variables = ran["global_step"]
    assert same
    assert (dtype, shape) == ("int64", [])
    assert variables == ["global_step", "large", "total"]
