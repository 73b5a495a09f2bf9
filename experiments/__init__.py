"""Experiments: distributed training with records, from a single class.

    from experiments import Experiment, Settings, run, setting

    class Mine(Experiment):
        ...

    if __name__ == "__main__":
        run(Mine)

`python -m experiments` lists the programs that come with the package. Importing it does not import
TensorFlow.
"""

from experiments.experiment import Experiment
from experiments.main import run
from experiments.recording.run import Result
from experiments.settings import Settings, setting
from experiments.training.inputs import Data, split

__all__ = ["Data", "Experiment", "Result", "Settings", "run", "setting", "split"]
