"""What the functions of an experiment do beside their values: it is done, in program order."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from compat import tf, tf1
from compat.runtime.program_order import after, beside, in_program_order
from tests.experiments.conftest import Training

PROGRAM = Path(__file__).parent / "programs" / "effects.py"
_DEADLINE_SECS = 400.0  # A busy machine takes minutes to send the record.
PLACES = {"alone": [], "cluster": ["--strategy=ps", "--num_ps=1", "--num_workers=2"]}

Train = Callable[..., Training]


@pytest.fixture(scope="module")
def start_effects(
    tmp_path_factory: pytest.TempPathFactory, start_program: Any, empty_store: Path
) -> Iterator[Train]:
    """Starts the program in a folder of its own."""
    started: list[Training] = []

    def begin(*flags: str) -> Training:
        folder: Path = tmp_path_factory.mktemp("effects")
        for file in (PROGRAM, empty_store):
            shutil.copy(str(file), str(folder))
        argv = [sys.executable, PROGRAM.name, *flags, "--logdir=logs"]
        env = {"TF_CPP_MIN_LOG_LEVEL": "3"}
        started.append(Training(argv, folder, folder / "logs", env, start_program))
        return started[-1]

    yield begin
    for training in started:
        training.end()


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest) -> str:
    """Alone, or as a cluster of this machine."""
    return str(request.param)


def found_by(training: Training) -> dict[str, float]:
    """Returns what the program has printed at its end."""
    assert training.wait(_DEADLINE_SECS).code == 0, training.out + training.err
    (line,) = [line for line in training.out.splitlines() if '{"in_loss"' in line]
    values: dict[str, float] = json.loads(line[line.index("{") :])
    return values


@pytest.mark.once
@pytest.mark.long
def test_each_update_does_all_once(start_effects: Train, runtime: str, place: str) -> None:
    training = start_effects(*PLACES[place], f"--runtime={runtime}")
    found = found_by(training)
    for name in ("in_loss", "in_gradients", "after_update"):
        # On the legacy runtime a worker may be within an update when its chief reads.
        assert 0 <= found[name] - found["step"] <= 2 * (place == "cluster"), (name, found)
    # The moving averages: of 100, and of a layer of Keras.
    assert found["mean"] == pytest.approx(100, abs=0.1)
    assert found["average"] == pytest.approx(9.3, abs=0.1)
    assert "the first loss is" in training.out + training.err
    assert "never run" not in training.out + training.err
    accuracy = training.out.partition("Test-Accuracy: ")[2].split()[0]
    assert float(accuracy) > 0.85  # By the moving averages.


@pytest.mark.once
@pytest.mark.slow
def test_a_false_assertion_ends_a_run(start_effects: Train, runtime: str, place: str) -> None:
    training = start_effects(*PLACES[place], f"--runtime={runtime}", "--labels=5").wait(
        _DEADLINE_SECS
    )
    assert training.code != 0
    assert "a label too large" in training.out + training.err


@pytest.mark.once
@pytest.mark.long
def test_a_monitor_that_no_evaluation_gives_is_refused_at_once(start_effects: Train) -> None:
    refused = start_effects("--watched=validation/acc").wait()
    sentence = (
        "error: monitor 'validation/acc' of Effects is not a value of an evaluation; set monitor "
        "to one of validation/accuracy, validation/loss\n"
    )
    assert (refused.code, refused.err) == (2, sentence)
    assert "Step: " not in refused.out


@pytest.mark.once
@pytest.mark.slow
def test_gradients_of_several_batches_in_a_call(start_effects: Train, runtime: str) -> None:
    flags = ["--communication_period=5", "--epochs=6", f"--runtime={runtime}"]
    found = found_by(start_effects(*PLACES["cluster"], *flags))
    assert 0 <= found["in_loss"] - found["step"] <= 10


@pytest.mark.once
@pytest.mark.slow
def test_replicas_that_make_each_update_together(start_effects: Train, runtime: str) -> None:
    found = found_by(start_effects(*PLACES["cluster"], "--sync", f"--runtime={runtime}"))
    assert 0 <= found["in_loss"] - 2 * found["step"] <= 2
    assert found["average"] == pytest.approx(9.3, abs=0.1)


@pytest.fixture
def graph() -> Iterator[Any]:
    """A graph, also where eager execution is enabled."""
    with tf1.Graph().as_default() as made:
        yield made


def test_program_order_is_that_of_a_function(graph: Any) -> None:
    first = tf1.get_variable("first", initializer=1.0, use_resource=True)
    second = tf1.get_variable("second", initializer=0.0, use_resource=True)

    def function() -> Any:
        before = first * 2
        first.assign(1.5)
        between = first * 10
        first.assign_add(0.5)
        tf.cond(before < 100, lambda: second.assign_add(1.0), lambda: second.assign_add(10.0))
        second.assign(second * 2)
        made = tf1.get_variable("made", initializer=7.0, use_resource=True)
        made.assign_add(1.0)
        tf.debugging.assert_less(before, 3.5, message="of floats")
        return before + between + made

    value, effects = in_program_order(function)
    value = after(beside(effects, value), value)
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        assert session.run(value) == 2 + 15 + 8
        assert session.run([first, second]) == [2.0, 2.0]
        with pytest.raises(tf1.errors.InvalidArgumentError, match="of floats"):
            session.run(value)


def test_a_function_that_fails_leaves_the_graph_as_it_was(graph: Any) -> None:
    def function() -> None:
        tf1.get_variable("v", initializer=1.0).assign_add(1.0)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        in_program_order(function)
    found, effects = in_program_order(lambda: tf.constant(1.0))
    assert effects == []
    assert found.op in graph.get_operations()
