"""Trains an experiment, which is a single class, on one machine or several, and records the run.

    from experiments import Experiment, Settings, run, setting

    class Cancer(Experiment):
        monitor, mode = "validation/recall", "max"

        @dataclass(frozen=True)
        class Settings(Settings):
            hidden: int = setting(16, "Hidden units.", at_least=1)

        def data(self):
            features, labels = load_breast_cancer(return_X_y=True)
            return split({"features": features.astype("float32"), "labels": labels})

        def build(self):
            self.model = Net(self.settings.hidden)

        def loss(self, batch, training):
            logits, labels = self.model(batch["features"]), batch["labels"]
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            return tf.reduce_mean(losses), {"labels": labels, "predictions": logits}

        def metrics(self):
            return {"recall": Recall()}

    if __name__ == "__main__":
        run(Cancer)

`python -m experiments` lists the programs that come with the package. The import of this package
does not import TensorFlow.
"""

from experiments.settings import Settings, setting
from experiments.training.experiment import Experiment
from experiments.training.inputs import Data, split
from experiments.training.main import run
from experiments.training.recording.callback import Callback
from experiments.training.recording.run import Result
from experiments.training.updates.update import Update

__all__ = [
    "Callback",
    "Data",
    "Experiment",
    "Result",
    "Settings",
    "Update",
    "run",
    "setting",
    "split",
]
