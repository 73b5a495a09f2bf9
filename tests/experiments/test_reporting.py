"""What the chief does between updates, with real writers, and a clock that the test moves."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest

from compat.tracking import Console, TensorBoard
from experiments import Experiment, Settings
from experiments.training.recording.images import as_images
from experiments.training.recording.report import DivergedError, Reporter, check_finite
from experiments.training.recording.run import Run
from experiments.training.recording.schedule import Schedule

Points = Dict[str, List[Tuple[int, Any]]]


class Hooked(Experiment):
    """Records the calls of its hooks."""

    loss_name = "cost"

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self.calls: list[tuple[str, int]] = []

    def on_step(self, run: Run, values: Any) -> None:
        self.calls.append(("on_step", run.step))

    def on_evaluation(self, run: Run, values: Any) -> None:
        self.calls.append(("on_evaluation", run.step))


class Chief:
    """A chief of two workers, whose epochs have ten batches; a line is due every five.

    Attributes:
      time: what its clock shows, in seconds.
      saved: the steps at which it wrote a checkpoint.
      disk_full: whether it cannot write one.
      later: how many updates others make while it evaluates, which takes `evaluation_secs`.
      lines: what it said.
    """

    def __init__(
        self, logdir: Path, record: Any, step: int = 0, batches: int | None = 10, **settings: Any
    ) -> None:
        self.experiment = Hooked(Settings(**settings))
        schedule = Schedule(
            batches_per_epoch=batches, num_workers=2, total_steps=60, steps_per_loop=1, log_every=5
        )
        self.time = 0.0
        self.saved: list[int] = []
        self.disk_full = False
        self.later, self.evaluation_secs = 3, 0.0
        self._logdir, self._record = logdir, record
        self._said = io.StringIO()
        self._board = TensorBoard(str(logdir))
        kernel = np.arange(784 * 20, dtype=np.float32).reshape(784, 20)
        run: Any = Run(step, self.experiment.settings, None, self._board, str(logdir))
        self.reporter = Reporter(
            self.experiment,
            schedule,
            run,
            Console(stream=self._said),
            self.experiment,
            # Others go on meanwhile: the measurement is of a later step.
            measure=self._measure,
            write_checkpoint=self._save,
            read_weights=lambda: {"kernel": kernel},
            clock=lambda: self.time,
        )

    def _measure(self) -> dict[str, float]:
        self.time += self.evaluation_secs
        return {"loss": 2.0, "accuracy": 0.5, "global_step": self.reporter.step + self.later}

    def _save(self) -> str:
        if self.disk_full:
            raise OSError("No space left on device")
        self.saved.append(self.reporter.step)
        return f"model.ckpt-{self.reporter.step}"

    def see(self, *steps: int, cost: float = 1.5, every: float = 0.5) -> None:
        """Reports updates, half a second after each other, or `every` seconds."""
        for step in steps:
            self.time += every
            self.reporter.report({"loss": cost, "accuracy": 0.25, "global_step": float(step)})

    @property
    def lines(self) -> list[str]:
        return self._said.getvalue().splitlines()

    def points(self) -> Points:
        """Closes the event file and returns what is in it."""
        self._board.close()
        found: Points = self._record(self._logdir).points
        return found


@pytest.fixture
def chief(tmp_path: Path, record: Any) -> Any:
    return lambda **settings: Chief(tmp_path / "log", record, **settings)


def test_lines(chief: Any) -> None:
    chief = chief()
    chief.see(*range(1, 21))
    assert chief.lines == [
        "Step: 10,  Epoch:  1,  Batch:   5 of  10,  Cost: 1.5000,  AvgTime: 1000.00ms",
        "Step: 20,  Epoch:  1,  Batch:  10 of  10,  Cost: 1.5000,  AvgTime: 1000.00ms",
        "Step: 23,  Validation-Cost: 2.0000,  Validation-Accuracy: 0.5000",
    ]
    assert chief.reporter.losses() == {"validation, step 23": 2.0}


def test_validation_is_beside_the_loss_of_the_same_step(chief: Any) -> None:
    chief = chief()
    assert chief.reporter.losses() == {}
    chief.see(*range(1, 11))
    assert chief.reporter.losses() == {"one batch, step 10": 1.5}
    chief.later = 0
    chief.see(*range(11, 21))
    assert chief.lines[1:] == [
        "Step: 20,  Epoch:  1,  Batch:  10 of  10,  Cost: 1.5000,  AvgTime: 1000.00ms,"
        "  Validation-Cost: 2.0000,  Validation-Accuracy: 0.5000"
    ]


def test_evaluations_that_take_most_of_the_time_are_said_once(chief: Any) -> None:
    chief = chief(log_every=1000, eval_every=5)
    chief.evaluation_secs = 30.0
    chief.see(*range(1, 31))
    assert [line for line in chief.lines if not line.startswith("Step: ")] == [
        "an evaluation took 30 s, the updates before it 2 s; --eval_every makes fewer, --evaluator "
        "makes them in a process beside a cluster"
    ]


@pytest.mark.parametrize(
    ("batches", "eval_every", "said"), [(None, 0, True), (None, 50, False), (10, 0, False)]
)
def test_interval_of_evaluations_is_said_where_no_epoch_says_it(
    chief: Any, batches: int | None, eval_every: int, said: bool
) -> None:
    settings = {"early_stopping_patience": 2, "checkpoint_every": 40, "eval_every": eval_every}
    chief = chief(batches=batches, **settings)
    chief.reporter.say_interval()
    begin = "an evaluation every 40 updates, as --checkpoint_every says, and at the end, since "
    assert [line.startswith(begin) for line in chief.lines] == [True] * said


def test_average_time_is_that_of_a_batch_of_one_worker(chief: Any) -> None:
    chief = chief()
    chief.see(4, 12)  # Twelve updates, six batches of each worker, in a second.
    assert chief.lines[0].endswith("AvgTime: 166.67ms")


def test_updates_that_come_late_are_passed_over(chief: Any) -> None:
    chief = chief(summary_every=1)
    chief.see(3, 2, 3, 1, 5)
    assert [step for step, _ in chief.points()["train/cost"]] == [3, 5]
    assert chief.reporter.step == 5


def test_curves(chief: Any) -> None:
    chief = chief(summary_every=4, learning_rate=0.25)
    chief.see(*range(1, 10))
    points = {
        tag: [(step, value.simple_value) for step, value in found]
        for tag, found in chief.points().items()
    }
    assert points == {
        "train/cost": [(4, 1.5), (8, 1.5)],
        "train/accuracy": [(4, 0.25), (8, 0.25)],
        "learning_rate": [(4, 0.25), (8, 0.25)],
        "steps_per_sec": [(4, 2.0), (8, 2.0)],
    }


def test_updates_that_come_at_once_have_the_speed_of_those_before(chief: Any) -> None:
    chief = chief(summary_every=10)
    chief.see(10, 20, 30)
    chief.see(40, 50, every=0.001)  # Of workers that trained while the chief evaluated.
    chief.see(60)
    found = [value.simple_value for _, value in chief.points()["steps_per_sec"]]
    # 20 a second; three points in half a second, not one in a thousandth.
    assert (min(found), found[-1]) == (20, 20)
    assert max(found) < 61


def test_curves_have_points_if_nobody_says_how_many(chief: Any) -> None:
    chief = chief()
    chief.see(*range(1, 61))
    assert [step for step, _ in chief.points()["train/cost"]] == list(range(6, 61, 6))


@pytest.mark.parametrize(("eval_every", "steps"), [(0, [23, 43]), (15, [18, 33])])
def test_measurements_have_the_step_at_which_they_were_made(
    chief: Any, eval_every: int, steps: list[int]
) -> None:
    chief = chief(eval_every=eval_every, summary_every=1000)
    chief.see(*range(1, 44))
    points = chief.points()
    assert len(points.pop("custom_scalars__config__")) == 1
    assert set(points) == {"validation/cost", "validation/accuracy", "weights/kernel"}
    assert [[step for step, _ in found] for found in points.values()] == [steps] * 3
    called = [step for hook, step in chief.experiment.calls if hook == "on_evaluation"]
    assert called == steps
    assert [value.simple_value for _, value in points["validation/accuracy"]] == [0.5, 0.5]


def test_a_step_is_measured_once(chief: Any) -> None:
    chief = chief(eval_every=1)
    chief.see(1)
    chief.reporter.evaluate()
    assert [step for step, _ in chief.points()["validation/cost"]] == [4]


def test_checkpoints(chief: Any) -> None:
    chief = chief(checkpoint_every=7)
    chief.see(5, 8, 9, 13, 29)
    assert chief.saved == [8, 29]


def test_each_update_that_is_seen_is_a_step_of_the_hooks(chief: Any) -> None:
    chief = chief()
    chief.see(3, 2, 5)
    assert chief.experiment.calls == [("on_step", 3), ("on_step", 5)]


def test_updates_are_told_when_they_are_saved(chief: Any) -> None:
    chief = chief(checkpoint_every=50, summary_every=50)
    chief.see(2)
    chief.disk_full = True
    with pytest.raises(OSError, match="No space left"):
        chief.see(290)  # The others have not waited for its second update.
    assert chief.lines == []
    assert not chief.points()


def test_a_resumed_training_goes_on_as_if_it_had_not_ended(chief: Any) -> None:
    chief = chief(step=18, summary_every=10, checkpoint_every=10)
    chief.see(19, 20)
    assert [line[:9] for line in chief.lines] == ["Step: 20,"]
    assert chief.saved == [20]
    assert [step for step, _ in chief.points()["train/cost"]] == [20]


@pytest.mark.parametrize("cost", [float("nan"), float("inf")])
def test_cost_that_is_no_number_ends_the_training(chief: Any, cost: float) -> None:
    chief = chief(learning_rate=1e9, checkpoint_every=1)
    chief.see(1)
    expected = (
        f"cost is {cost} at step 2, expected a finite number; the last good checkpoint stays; "
        r"lower --learning_rate=1e\+09"
    )
    with pytest.raises(DivergedError, match=expected):
        chief.see(2, cost=cost)
    assert chief.saved == [1]


def test_diverging_is_a_failure_that_no_restart_mends() -> None:
    check_finite({"loss": 1e30, "global_step": 1.0}, 0.1)
    assert DivergedError.exit_code == 1


def test_cost_is_none_until_there_is_one(chief: Any) -> None:
    chief = chief()
    assert chief.reporter.loss is None
    chief.see(1)
    assert chief.reporter.loss == 1.5


def test_weights_of_a_dense_layer_are_images_of_its_input() -> None:
    weights = np.zeros([784, 20], np.float32)
    weights[28 * 2 + 5, 3] = 7.0
    weights[28 * 9 + 1, 3] = -1.0
    images = as_images(weights)
    assert (images.dtype, images.shape) == (np.uint8, (16, 28, 28, 1))
    assert images[3, 2, 5, 0] == 255
    assert images[3, 9, 1, 0] == 0
    assert images[3, 0, 0, 0] == 32
    assert not images[[0, 1, 2]].any()  # All the same: no division by zero.


def test_weights_of_a_convolution_are_its_filters() -> None:
    weights = np.arange(5 * 5 * 32, dtype=np.float32).reshape(5, 5, 1, 32)
    images = as_images(weights)
    assert images.shape == (16, 5, 5, 1)
    assert [images[0].min(), images[0].max()] == [0, 255]
