r"""Predicts clicks by wide & deep or DLRM: hashed categories, tables on parameter servers.

    python -m experiments.recommender --strategy=ps --num_ps=2 --num_workers=2 --model=dlrm

With `--data_dir` it reads files in Criteo's format. Without it the clicks are made up from known
probabilities, and the best possible AUC and log loss are logged at the start. docs/recommender.md
has more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from compat import UserError, tf
from experiments import Data, Experiment, run, setting
from experiments.datasets import clicks, criteo
from experiments.evaluation.metrics import (
    AUC,
    Calibration,
    Collisions,
    LogLoss,
    PrecisionRecallCurve,
)

MODELS = ("wide_deep", "dlrm")
SPLITS = ("train", "validation", "test")
EVALUATED = 10000  # Number of made-up examples for validation, and as many for the test.


class Recommender(Experiment):
    """Predicts clicks from 13 numbers and 26 categories, by wide & deep or DLRM."""

    monitor, mode = "validation/auc", "max"

    @dataclass(frozen=True)
    class Settings(Experiment.Settings):
        """The settings of this experiment, in addition to those that every experiment has."""

        model: str = setting("wide_deep", "Model.", choices=MODELS)
        optimizer: str = "adagrad"
        learning_rate: float = 0.2
        epochs: int = setting(2, "Passes over the training set.", at_least=1, group="training")
        data_dir: str = setting(
            "", "Folder of train*, validation* and test* in Criteo's format.", group="data"
        )
        examples: int = setting(
            100000, "Training examples, where they are made up.", at_least=1000, group="data"
        )
        values: int = setting(
            1000, "Values of the largest made-up category.", at_least=4, group="data"
        )
        buckets: int = setting(10000, "Rows of each category's table.", at_least=1)
        ids: str = setting(
            "hashed",
            "Row of a value: that of its hash (hashed), or one of its own, once it has been seen "
            "--admit_after times (mapped); mapped categories share the rows.",
            choices=("hashed", "mapped"),
        )
        admit_after: int = setting(
            1, "With --ids=mapped, times that a value is seen before it gets a row.", at_least=1
        )
        forget_after: int = setting(
            0,
            "With --ids=mapped, updates without a value after which another value may get its row; "
            "0: never.",
            at_least=0,
        )
        width: int = setting(8, "Numbers in an embedding.", at_least=1)
        hidden: str = setting("64,32", "Units of each hidden layer, separated by commas.")
        precision: str = setting(
            "float32",
            "Type of the numbers in the layers' products; bfloat16 is faster if supported.",
            choices=("float32", "bfloat16"),
        )

        def __post_init__(self) -> None:
            super().__post_init__()
            units(self.hidden)
            if self.ids == "mapped" and self.accumulate > 1:
                raise UserError(
                    f"--accumulate={self.accumulate} cannot be with --ids=mapped, which notes the "
                    "rows of whole batches; leave one of them out"
                )
            is_mapped = self.ids == "mapped"
            for of, met, defaults in (
                ("--ids=mapped; add that", is_mapped, {"admit_after": 1, "forget_after": 0}),
                (
                    "made-up examples; leave --data_dir out",
                    not self.data_dir,
                    {"examples": 100000, "values": 1000},
                ),
            ):
                for name, default in defaults.items():
                    if not met and getattr(self, name) != default:
                        raise UserError(
                            f"--{name}={getattr(self, name)} is of {of}, or leave it out"
                        )
            if is_mapped and (self.strategy == "multi_worker" or self.communication_period > 1):
                raise UserError(
                    "--ids=mapped needs one map that all workers update; leave "
                    "--strategy=multi_worker and --communication_period out, or use --ids=hashed"
                )

    def data(self) -> Any:
        folder, count = self.settings.data_dir, self.settings.examples
        if folder:
            files = {split: criteo.files(folder, split) for split in SPLITS}
            streams: Any = {split: partial(self._stream, files[split], split) for split in SPLITS}
            return Data(**streams, name="clicks in Criteo's format", source=folder)
        law = clicks.Law(values=self.settings.values)
        made = dict(zip(SPLITS, map(law.make, range(3), (count, EVALUATED, EVALUATED))))
        best = {"labels": made["test"].labels, "predictions": made["test"].chances}
        found = quality()
        for metric in found.values():
            metric.update(best)
        shown = ", ".join(f"{name} {metric.result():.4f}" for name, metric in found.items())
        print(f"the best possible predictions have on the test split: {shown}")
        arrays: Any = {split: examples.arrays() for split, examples in made.items()}
        return Data(**arrays, name="made-up clicks", source=clicks.__name__)

    def _stream(self, files: Any, split: str, worker: int, workers: int) -> Any:
        """Returns a `tf.data.Dataset` of the batches of a worker."""
        lines, size = criteo.lines(files, worker, workers), self.settings.batch_size
        if split == "train":
            lines = lines.shuffle(50 * size, seed=self.settings.seed)
        batches = lines.batch(size, drop_remainder=split == "train")
        return batches.map(criteo.parse, num_parallel_calls=2).prefetch(2)

    def explain(self, error: Exception) -> Exception | None:
        folder = self.settings.data_dir
        paths = [path for split in SPLITS for path in criteo.files(folder, split)] if folder else []
        return criteo.malformed(paths)

    def loss(self, batch: Any, training: bool) -> Any:
        import models  # Not at the top: its classes need TensorFlow, and --help does not.
        from models import embeddings, row_map

        settings, ids = self.settings, batch["categories"]
        outputs = {"labels": batch["labels"]}
        if settings.ids == "mapped":
            rows: Any = row_map.MappedRows(ids, sum(self._sizes()))
            self._rows = rows
            outputs["own_rows"] = tf.reduce_mean(tf.cast(rows.known, tf.float32))
            if not training:
                outputs["used_rows"] = rows.used()
        else:
            rows, outputs["categories"] = embeddings.Rows(ids, self._sizes()), ids
        hidden, model = units(settings.hidden), getattr(models, settings.model)
        logits = model(
            *(batch["numbers"], rows, settings.width, hidden, settings.seed, settings.precision)
        )
        labels = tf.cast(batch["labels"], tf.float32)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
        return tf.reduce_mean(losses), {**outputs, "predictions": tf.sigmoid(logits)}

    def after_update(self, step: Any, optimizer: Any) -> Any:
        if self.settings.ids != "mapped":
            return None
        admission = self.settings.admit_after, self.settings.forget_after
        return self._rows.remember(optimizer, step, *admission)

    def metrics(self) -> Any:
        found = {**quality(), "pr_curve": PrecisionRecallCurve()}
        if self.settings.ids == "hashed":
            found["collisions"] = Collisions(self._sizes())
        return found

    def _sizes(self) -> list[int]:
        return [self.settings.buckets] * criteo.CATEGORIES


def quality() -> dict[str, Any]:
    """Returns new metrics for predicted probabilities or, as the best possible, the true ones."""
    return {"auc": AUC(), "log_loss": LogLoss(), "calibration": Calibration()}


def units(text: str) -> list[int]:
    """Returns the numbers in a text such as "64,32".

    Raises:
      UserError: the text is not a list of positive whole numbers.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise UserError(
            f"--hidden={text} is not a list of positive whole numbers; give units of each layer, "
            "as in --hidden=64,32"
        )
    return [int(part) for part in parts]


if __name__ == "__main__":
    run(Recommender)
