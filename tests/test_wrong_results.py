"""What once gave a wrong result without a word, and the test that would show it now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

HERE = Path(__file__).parent
SUPERVISOR = "compat/test_supervisor.py::"
FAULTS = "experiments/faults/test_faults.py::"
SHOWN_BY = {
    "variables that share an initial tensor are restored alike": SUPERVISOR
    + "test_variables_that_share_an_initial_tensor_are_restored_each",
    "a step on a cluster of the modern runtime returns another step's values": (
        "compat/test_inputs.py::test_each_step_gives_its_own_values"
    ),
    "an operation that no value depends on runs": (
        "compat/test_inputs.py::test_an_operation_that_no_value_depends_on_does_not_run"
    ),
    "an operation that a step does not return runs": (
        "compat/test_session.py::test_what_a_step_does_not_return_does_not_run"
    ),
    "an init_op of the program undoes a restore": SUPERVISOR
    + "test_init_op_is_not_run_after_a_restore",
    "init_op=None with an init_fn undoes a restore": SUPERVISOR
    + "test_init_op_is_not_run_after_a_restore",
    "each step of one call has an iterator of its own, or draws the same numbers": (
        "compat/test_inputs.py::test_steps_share_an_iterator_and_draw_other_numbers"
    ),
    "what is made outside of compat.device trains alone": (
        "compat/test_lifting.py::test_what_is_made_outside_of_the_scope_would_train_alone"
    ),
    "seeds mean something else on each runtime, or make two variables alike": (
        "compat/test_session.py::test_seeds"
    ),
    "RandomStrategy places a variable elsewhere in another task": (
        "compat/test_placement.py::test_each_variable_is_where_the_setter_says"
    ),
    "an update is applied more often than docs/failures.md says, or never": (
        "ledger/test_ledger.py::test_updates_of_a_cluster_that_loses_tasks"
    ),
    "OutOfRangeError ends a run with an error, or without a checkpoint": SUPERVISOR
    + "test_the_end_of_the_data_is_a_clean_end",
    "Supervisor(saver=tf1.train.Saver()) does not save or restore": SUPERVISOR
    + "test_the_saver_of_tensorflow_saves_and_restores",
    "a worker of a program without a global step waits for one": SUPERVISOR
    + "test_a_program_without_a_global_step_gets_none",
    "a due summary joins a call that restores": SUPERVISOR
    + "test_a_summary_waits_for_a_call_that_trains_and_feeds",
    "control dependencies on an input, tf.metrics: the modern runtime computes something else": (
        "conformance/test_api.py::test_numbers_in_a_cluster"
    ),
    "Adam on a partitioned variable is restored into other parts": (
        "compat/test_checkpoint.py::test_a_partitioned_variable_is_restored_into_other_parts"
    ),
    "a second managed_session begins anew": SUPERVISOR + "test_a_second_session_resumes",
    "prepare_or_wait_for_session gives no default session": SUPERVISOR
    + "test_a_session_is_the_default_one",
    "infinity in a variable like best_loss prevents all checkpoints": SUPERVISOR
    + "test_infinity_may_be_saved_where_nothing_is_trained",
    'a step returns a number, {"lr": 0.1}': (
        "compat/test_session.py::test_values_have_any_shape_and_kind"
    ),
    "request_stop(sys.exc_info()) is a clean end": SUPERVISOR
    + "test_an_error_of_a_thread_is_raised_and_nothing_more_is_saved",
    "run_many on no rows makes an update": (
        "compat/test_session.py::test_many_updates_on_no_rows_are_none"
    ),
    "a parameter server ends with 0 when the chief gives up opening": FAULTS + "test_never_started",
    "a thread that misses a peer makes the end look like the program's": SUPERVISOR
    + "test_a_peer_that_a_thread_misses_is_known_before_the_end",
    "the README's program that loses a peer does not end with 138": (
        "test_readme.py::test_program_names_a_lost_peer"
    ),
    "a CancelledError of the program counts as a lost peer": (
        "compat/test_server_arguments.py::test_an_error_of_the_program_is_not_a_lost_peer"
    ),
    "what TensorFlow says as it aborts is held back": (
        "compat/test_startup.py::test_the_last_words_of_a_process_that_aborts_appear"
    ),
    "threads that share a session lose updates or records": (
        "compat/test_session.py::test_threads_may_share_a_session"
    ),
    "a peer that does not answer delays the question to the next": (
        "compat/test_rendezvous.py::test_peers_are_asked_side_by_side"
    ),
    "device filters of the program are lost": SUPERVISOR + "test_device_filters_are_set_in_a_copy",
}


@pytest.mark.parametrize("what", SHOWN_BY)
def test_a_test_shows(what: str) -> None:
    file, _, name = SHOWN_BY[what].partition("::")
    assert re.search(rf"^ *def {name}\(", (HERE / file).read_text("utf-8"), re.MULTILINE)
