"""What a supervisor writes, restores and ends; each update halves the distance of 0 to 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from tests.conftest import RunProgram

FIRST = ["model.ckpt-0"]  # Written when the session opens, as by TensorFlow.
COSTS = [[1, "cost", 1], [2, "cost", 1 / 4], [3, "cost", 1 / 16]]


@pytest.fixture(scope="module")
def graphs(run_program: RunProgram, programs: Path) -> Any:
    """What programs with graphs did, by case, of `programs/graphs.py`."""
    return run_program(programs / "graphs.py", runtime="legacy")


class TestSummaries:
    """Each case makes three updates, with evaluations before and after that write nothing."""

    @pytest.mark.parametrize("case", ["summaries_of_each_step", "summaries_by_default"])
    def test_values_of_each_training_call_are_written(self, supervised: Any, case: str) -> None:
        assert supervised[case] == COSTS

    def test_the_first_call_writes_and_the_next_is_due_later(self, supervised: Any) -> None:
        assert supervised["the_first_summary_only"] == COSTS[:1]

    def test_without_summaries_none_are_written_and_without_a_writer_no_file(
        self, supervised: Any
    ) -> None:
        assert supervised["no_summaries"] == []
        assert supervised["never_summaries"] == []

    def test_a_dict_a_summary_and_its_bytes_can_be_written(self, supervised: Any) -> None:
        assert supervised["summaries_of_ones_own"] == [
            [1, "dict", 1],  # The global step, where none is given.
            [20, "proto", 2],
            [30, "binary", 3],
            [40, "binary", 3],
        ]

    def test_without_a_log_folder_nothing_can_be_written(self, supervised: Any) -> None:
        summary, checkpoint, writer, path = supervised["nowhere_to_write"]
        assert summary == "summary_computed() requires a summary writer; pass logdir= to the chief"
        assert checkpoint == (
            "save() needs a log folder and a saver; pass logdir= to the supervisor, and not "
            "saver=None"
        )
        assert (writer, path) == (None, None)

    def test_only_the_chief_writes_and_restores(self, supervised: Any) -> None:
        assert supervised["not_the_chief"] == [None, None]


class TestCheckpoints:
    @pytest.mark.parametrize(
        ("case", "names"),
        [
            ("saves_at_each_call", ["net-0", "net-1", "net-2", "net-3"]),
            ("saves_at_the_end", ["model.ckpt-0", "model.ckpt-3"]),
            ("never_saves", []),
        ],
    )
    def test_checkpoints_are_written_when_due(self, supervised: Any, case: str, names: Any) -> None:
        assert supervised[case] == names

    def test_updates_in_a_branch_are_saved(self, supervised: Any) -> None:
        seen, total, saved = supervised["saves_updates_in_a_branch"]
        assert (seen, total) == ([False, True, False, True], 3)
        assert saved == ["model.ckpt-0", "model.ckpt-1", "model.ckpt-2"]

    def test_a_checkpoint_can_be_asked_for(self, supervised: Any) -> None:
        name = "model.ckpt-1"
        assert supervised["saves_when_asked"] == [name, [name], "model.ckpt"]

    def test_without_a_saver_there_are_none(self, supervised: Any) -> None:
        assert supervised["without_a_saver"] == [[], None]

    def test_the_given_saver_writes_them(self, supervised: Any) -> None:
        assert supervised["with_a_saver"] == [["model.ckpt-3"], True]

    def test_init_fn_begins_a_training_but_resumes_none(self, supervised: Any) -> None:
        assert supervised["init_fn"] == [8, 4, 4, 2, 2, 1, 1, 0.5]

    def test_a_weight_that_is_not_finite_is_an_error_at_the_end(self, supervised: Any) -> None:
        said, stopped, checkpoints = supervised["not_finite_at_the_end"]
        assert said == "variable weight has a value that is not finite; not saved"
        assert stopped
        assert checkpoints == FIRST


class TestEnd:
    def test_a_request_ends_loops_and_waits(self, supervised: Any) -> None:
        seen = supervised["stopping"]
        assert not seen["before"]
        assert seen["updates"]
        assert seen["after"]
        assert seen["stopped"] == [True, True, True]

    def test_a_loop_calls_with_its_arguments(self, supervised: Any) -> None:
        assert supervised["stopping"]["call"] == [[1], {}]

    @pytest.mark.parametrize("case", ["stopped_by_an_error", "stopped_by_a_loop"])
    def test_an_error_that_was_handed_over_is_raised_at_the_end(
        self, supervised: Any, case: str
    ) -> None:
        assert supervised[case] == "disk is full"

    def test_an_error_in_the_body_is_raised_and_nothing_more_is_saved(
        self, supervised: Any
    ) -> None:
        assert supervised["error_in_the_body"] == ["'mine'", True, FIRST]

    def test_a_peer_that_a_thread_misses_is_known_before_the_end(self, supervised: Any) -> None:
        assert supervised["of_2016_with_a_lost_peer"] == ["lost", ["PeerError"]]

    def test_a_session_is_closed_whose_first_checkpoint_fails(self, supervised: Any) -> None:
        refused = "variable weight has a value that is not finite; not saved"
        assert supervised["first_checkpoint_fails"] == [refused, refused, [True, True]]

    def test_a_variable_that_begins_infinite_is_saved(self, supervised: Any) -> None:
        assert supervised["begins_infinite"] == [True, ["model.ckpt-0", "model.ckpt-1"]]

    def test_a_program_of_2016_ends_by_stop(self, supervised: Any) -> None:
        assert supervised["of_2016"] == [3, True, 0.875]


def test_the_global_step_is_the_one_there_is_or_none(supervised: Any) -> None:
    assert supervised["global_steps"] == [True, None, 1]


def test_what_needs_a_program_in_each_task(supervised: Any, runtime: str) -> None:
    if runtime == "modern":
        assert supervised["sync_optimizer"] == (
            "sync_optimizer needs queues that a coordinator does not have; use "
            "compat.v1.train.SyncReplicasOptimizer without it, or --runtime=legacy"
        )


def test_steps_read_queues_of_input(supervised: Any) -> None:
    *batches, (half, has_ended) = supervised["queues_of_input"]
    assert [batch for batch, _ in batches] == [
        [[1.0, 2.0], [3.0, 4.0]],
        [[5.0, 6.0], [1.0, 2.0]],
        [[3.0, 4.0], [5.0, 6.0]],
    ]
    assert [weight for _, weight in batches] == [10.0, 24.0, 42.0]
    assert (half, has_ended) == (1.5, True)  # What reads no queue runs on.


def test_synchronous_replicas_are_calls_of_a_session(supervised: Any, runtime: str) -> None:
    if runtime == "modern":
        runner, is_hook, tokens, *calls = supervised["synchronous_replicas"]
        assert (runner, is_hook, tokens) == (None, True, None)
        seen = [[1.0, 1.0], [0.5, 0.75], [0.5, 0.75], [0.0, -0.5], [0.0, -0.5]]
        assert calls == [[(i + 1) // 2, weight] for i, weight in enumerate(seen)]


def test_replicas_average_each_row_over_those_that_read_it(supervised: Any) -> None:
    """As those of TensorFlow 1.15, whose rows are in order; in disorder these have the same."""
    golden = Path(__file__).parents[1] / "conformance" / "golden_replica_rows.json"
    expected = json.loads(golden.read_text("utf-8"))
    for name, seen in supervised["replicas_that_read_rows"].items():
        for values, numbers in zip(seen, expected[name]):
            for value, number in zip(values, numbers):
                np.testing.assert_allclose(value, number, rtol=0, atol=1e-5, err_msg=name)


class TestGraphs:
    """Programs with placeholders, queues and operations of their own, on the legacy runtime."""

    def test_a_summary_may_need_placeholders(self, graphs: Any) -> None:
        """It sees the feed of the training call, and evaluations on 100 write nothing."""
        found = graphs["summary_of_placeholders"]
        assert found["costs"] == [1, 2.25, 3.0625]
        expected = []
        for step, cost in enumerate(found["costs"], start=1):
            expected += [[step, "cost", cost], [step, "input", step]]
        assert found["written"] == expected

    def test_what_the_graph_collected_is_written_by_default(self, graphs: Any) -> None:
        """Whether the training operation is run, or it is run among others, or by its name."""
        expected = [[1, "cost", 4], [2, "cost", 1], [3, "cost", 0.25]]
        assert graphs["summaries_that_the_graph_collected"] == expected

    def test_no_hidden_call_takes_elements_from_a_queue(self, graphs: Any) -> None:
        found = graphs["elements_of_a_queue"]
        assert found["sizes"] == [9, 8, 7, 6]
        assert found["written"] == [[step + 1, "input", step] for step in range(4)]

    def test_each_kind_of_update_is_saved(self, graphs: Any) -> None:
        names = ["model.ckpt-0", "model.ckpt-1", "model.ckpt-2"]
        assert graphs["updates_of_other_kinds"] == [names] * 4

    def test_queue_runners_start_and_end_with_the_session(self, graphs: Any) -> None:
        assert graphs["queue_runners"] == [1, 2, 3, 1, 2]

    def test_operations_that_initialise_can_be_given(self, graphs: Any) -> None:
        assert graphs["operations_of_ones_own"] == [0, 0]

    def test_the_first_step_is_the_one_the_chief_gave(self, graphs: Any) -> None:
        """Not the one it finds, when others have been quicker; in the second start neither."""
        assert graphs["others_that_are_quicker"] == [[0, 7], [7, 14]]

    def test_a_session_has_all_that_that_of_tensorflow_has(self, graphs: Any) -> None:
        assert graphs["the_session_of_tensorflow"] == {
            "graph": True,
            "callable": 9,
            "by name": 0,
            "variable by name": {"weight": [0]},
            "session": True,
        }


class TestOwners:
    """Programs as TensorFlow 1.x took them, on the legacy runtime."""

    def test_variables_that_share_an_initial_tensor_are_restored_each(self, graphs: Any) -> None:
        values = [[1, 1], [5, 5]]
        found = graphs["variables_that_share_an_initial_tensor"]
        assert found == [[0, 0], [0, 0], *values, *values, *values]

    def test_init_op_is_not_run_after_a_restore(self, graphs: Any) -> None:
        """Weights before and after a step to 8, and the first step; the last starts anew."""
        assert graphs["initialised_by_the_program"] == [[0, 4, 0], [4, 6, 1], [6, 7, 2], [0, 4, 0]]

    def test_the_end_of_the_data_is_a_clean_end(self, graphs: Any) -> None:
        assert graphs["end_of_the_data"] == [[1, 2, 3], ["model.ckpt-0", "model.ckpt-3"]]

    def test_an_error_of_a_thread_is_raised_and_nothing_more_is_saved(self, graphs: Any) -> None:
        assert graphs["error_of_a_thread"] == ["disk is full", FIRST]
        assert graphs["error_of_exc_info"] == "disk is full"

    def test_an_error_of_a_thread_goes_before_a_later_one_of_the_body(self, graphs: Any) -> None:
        first, then = graphs["error_of_the_body_after_that_of_a_thread"]
        assert first == "OSError('disk is full')"
        assert then == "KeyError('the data that the thread did not read')"

    def test_a_thread_does_its_last_work_in_the_open_session(self, graphs: Any) -> None:
        assert graphs["last_work_of_a_thread"] == [1]

    def test_the_saver_of_tensorflow_saves_and_restores(self, graphs: Any) -> None:
        names = ["model.ckpt-1", "model.ckpt-2"]
        assert graphs["saver_of_tensorflow"] == [[[0, 0], [4, 1]], names]

    def test_our_saver_takes_a_session_of_tensorflow(self, graphs: Any) -> None:
        assert graphs["saver_of_ours_in_a_session_of_tensorflow"] == ["m-1", 4]

    def test_a_program_without_a_global_step_gets_none(self, graphs: Any) -> None:
        weight, step, planned, written, saved, variables = graphs["without_a_global_step"]
        assert (weight, step, planned) == (1, None, 0)
        assert [tag for _, tag, _ in written] == ["weight_1", "weight_1"]
        assert (saved, variables) == (["model.ckpt"], ["weight"])

    def test_a_summary_waits_for_a_call_that_trains_and_feeds(self, graphs: Any) -> None:
        begun, written = graphs["summary_that_a_call_cannot_feed"]
        assert begun == [1, 4]
        assert written == [[2, "cost", 4]]

    def test_a_second_session_resumes(self, graphs: Any) -> None:
        assert graphs["two_sessions"] == [[3, 0, 3], [3, 3, 6]]

    def test_a_session_is_the_default_one(self, graphs: Any) -> None:
        assert graphs["default_session"] == [4, True]

    def test_infinity_may_be_saved_where_nothing_is_trained(self, graphs: Any) -> None:
        assert graphs["infinity"] == [[True, True], ["model.ckpt-0"]]

    def test_services_that_are_not_wanted_are_not_started(self, graphs: Any) -> None:
        assert graphs["services_that_are_not_wanted"] == [[], []]

    def test_waiting_ends_in_time(self, graphs: Any) -> None:
        assert graphs["waits"] == [
            "FOLDER has no checkpoint after 0.3 s, for which wait_for_checkpoint=True waits; "
            "start what writes it, or raise max_wait_secs",
            True,
        ]

    def test_threads_may_share_a_session(self, graphs: Any) -> None:
        steps, summaries, kept = graphs["threads"]
        assert steps == 40
        assert summaries >= 1
        assert kept

    def test_the_files_are_those_of_tensorflow(self, graphs: Any) -> None:
        seen, events, has_graph, saved = graphs["files_of_tensorflow"]
        assert seen == [False, True, 287, "NoOp"]
        assert events == [
            "file_version",
            "graph_def",
            "meta_graph_def",
            "session_log START",
            "summary  global_step/sec",
            "session_log CHECKPOINT",
            "session_log CHECKPOINT",
            "session_log STOP",
        ]
        assert has_graph
        assert saved == ["model.ckpt-287"]

    def test_device_filters_are_set_in_a_copy(self, graphs: Any) -> None:
        named = ["/job:ps", "/job:worker/task:0", "/job:worker/task:1"]
        chosen = ["/job:ps", "/job:worker"]
        anywhere = [
            ["/job:ps", "/job:worker/task:0"],
            ["/job:ps", "/job:worker/task:2"],
            ["/job:ps", "/job:master/task:0", "/job:worker/task:0"],
        ]
        assert graphs["device_filters"] == [[named, chosen, named, *anywhere], [], True]
