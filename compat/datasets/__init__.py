"""Data sets as named arrays, for any experiment, and the order of the batches.

Example:
    from compat import datasets

    dataset = datasets.load("auto")                    # MNIST, or digits where there is no network
    print(dataset.name, dataset.source, dataset.checksum)
    splits = dataset.splits()                          # {"train": {"images": ..., "labels": ...}}
    train = dataset.train
    batches = datasets.Batches(len(train.labels), batch_size=100, seed=1)
    batches.skip(300)                                  # a resumed run: the same stream
    for indices in batches.next(batches.batches_per_epoch):
        images = train.images[indices] / np.float32(255)   # float32 [100, 28, 28], in [0, 1]
        labels = train.labels[indices]                     # int32 [100], 0..9
"""

from compat.datasets.batches import Batches
from compat.datasets.dataset import Dataset, Split
from compat.datasets.load import NAMES, load
from compat.datasets.published import CLASSES

__all__ = ["Batches", "CLASSES", "Dataset", "NAMES", "Split", "load"]
