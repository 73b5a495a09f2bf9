"""What a session gives back, on either runtime: each update adds 1 and 10 times its input."""

from __future__ import annotations

from typing import Any

import pytest


def test_the_first_call_gives_values(ran: Any) -> None:
    assert ran["first"] == {"global_step": 1, "large": 2**53 - 1, "seen": 0}


def test_many_updates_give_the_values_of_the_last(ran: Any) -> None:
    assert ran["many"] == {"global_step": 4, "large": 2**53 - 1, "seen": 11 * (1 + 1 + 2)}


@pytest.mark.parametrize("kind", ["function", "tape", "dropout"])
def test_many_updates_are_what_as_many_calls_are(ran: Any, runtime: str, kind: str) -> None:
    """Bit for bit, random numbers included; the legacy runtime has no copies that draw."""
    found = ran["in_one_call"][kind]
    assert found["one"][0]["global_step"] == 157
    if runtime == "legacy":
        assert found["updates_in_a_call"] == (1 if kind == "dropout" else 20)
    else:
        assert found["updates_in_a_call"] == [5, 25]
        assert found["traced"] == 1
    assert found["many"] == found["one"]


def test_a_call_is_given_up_while_it_is_built(ran: Any, runtime: str) -> None:
    assert ran["interrupted"] == ([True, 150, 150, 200] if runtime == "modern" else None)


def test_threads_may_run_calls_while_operations_are_added(ran: Any) -> None:
    assert ran["calls_while_building"] == []


def test_the_planned_step_counts_what_was_handed_out(ran: Any) -> None:
    assert ran["planned"] == [0, 1, 4]


def test_an_evaluation_sees_all_updates_and_makes_none(ran: Any) -> None:
    assert ran["look"] == [{"global_step": 4, "sum": 77}] * 2
    assert ran["read"] == {"t": [7, 70]}


def test_a_process_alone_has_nothing_to_drain(ran: Any) -> None:
    assert ran["drained"] == []


def test_a_thread_looks_while_another_trains(ran: Any) -> None:
    assert ran["looks_while_training"] == [True, 1.0]


def test_variables_can_be_fetched_in_any_structure(ran: Any) -> None:
    assert ran["fetched"] == [[7, 70], [[7, 70], 4], [7, 70]]


def test_variables_can_be_assigned(ran: Any) -> None:
    assert ran["assigned"] == [5, 6]


def test_a_call_takes_as_many_arrays_as_the_signature_has(ran: Any) -> None:
    sentence = "a step was run on {} arrays; its signature has 1, pass as many"
    assert ran["too_few"] == sentence.format(0)
    assert ran["too_many"] == sentence.format(2)


def test_a_call_takes_arrays_of_the_shapes_of_the_signature(ran: Any) -> None:
    sentence = "a step was run with the shape [2, 3] for 'x'; its signature has [2], pass that"
    assert ran["shape"] == sentence


def test_many_updates_take_as_many_rows_of_each_array(ran: Any) -> None:
    sentence = "run_many was given arrays of {}; pass as many rows in each, and no count"
    counts = ["2 rows, and count=3", "2 rows, and count=1", "1 and 2 rows"]
    assert ran["uneven"] == [sentence.format(count) for count in counts]
    assert ran["no_rows"] == [{}, 4]


def test_what_is_fed_has_a_name_in_the_signature(ran: Any) -> None:
    assert ran["feed_dict"] == (
        "feed_dict has 'x', and the signature of the step has no names; name what is fed as in "
        "tf.TensorSpec([None], name='x'), or pass the arrays behind the step"
    )


def test_a_dataset_gives_elements_until_its_end_and_anew(ran: Any) -> None:
    assert ran["of_any_shape"]["sums"] == [20, 21, 22, 23] * 2


def test_values_have_any_shape_and_kind(ran: Any) -> None:
    seen = ran["of_any_shape"]
    assert seen["last"] == [0.5, 1, [[0, 0, 4]], [[3, 0], [4, 3]], ["a", "b"]]
    assert seen["kinds"]["sum"] == ["float", 0]
    assert seen["kinds"]["dense"] == ["ndarray", [1, 3]]


def test_what_a_step_does_not_return_does_not_run(ran: Any) -> None:
    assert ran["of_any_shape"]["counter"] == 8


def test_seeds(ran: Any) -> None:
    """Those of an operation mean the same on both runtimes; that of all makes no two alike."""
    first, second = ran["seeded"]["own"]
    assert first == second == pytest.approx([0.9447038, -0.9667907])
    first, second = ran["seeded"]["all"]
    assert first != second


def test_many_updates_on_no_rows_are_none(ran: Any) -> None:
    assert ran["of_any_shape"]["nothing"] == {}


def test_threads_may_share_a_session(ran: Any) -> None:
    assert ran["threads"] == [40, 40, 40]
