"""Loads data sets by name, from the disk or else from the network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Callable, Union

from compat.datasets import digits, published
from compat.datasets.dataset import Dataset
from compat.datasets.download import DownloadError, download
from compat.datasets.published import Published
from compat.errors import UserError

NAMES = ("mnist", "fashion_mnist", "digits", "auto")

DataDir = Union[str, "os.PathLike[str]", None]


def load(name: str, data_dir: DataDir = None, *, say: Callable[[str], None] = print) -> Dataset:
    """Loads a data set; downloads it first if necessary.

    MNIST and Fashion-MNIST are four IDX files, gzip or plain, in the folder `data_dir`, else
    `$MNIST_DATA_DIR`, else `$XDG_CACHE_HOME/compat-experiments/<name>`. MNIST is also read from
    Keras's `mnist.npz`, in that folder or in Keras's own cache. Missing files are downloaded into
    that folder, as by `read_data_sets("MNIST_data")`; existing files are never replaced. Only the
    published data are accepted, by checksum; the first 5,000 training images are the validation
    split.

    "auto" is MNIST if it is on the disk or can be downloaded within 20 s, else the digits; `say`
    receives the choice and its reason. Each process that calls it chooses separately: in a cluster
    let one process call it, and pass the resulting name to the others.

    Args:
      name: One of `NAMES`.
      data_dir: The folder of MNIST or Fashion-MNIST; "digits" needs none.
      say: Receives lines for the user: downloads, and the choice of "auto".

    Raises:
      UserError: The name is unknown; a file in the folder is broken or not the published one (for
        "auto", too); or the data set is neither on the disk nor can it be downloaded.
    """
    if name == "mnist":
        return obtain(published.MNIST, data_dir, say)
    if name == "fashion_mnist":
        return obtain(published.FASHION_MNIST, data_dir, say)
    if name == "digits":
        return digits.load()
    if name == "auto":
        return choose(published.MNIST, data_dir, say)
    raise UserError(
        f"data set {name!r} is unknown, expected one of {', '.join(NAMES)}; give another --dataset"
    )


def obtain(
    data: Published,
    data_dir: DataDir,
    say: Callable[[str], None],
    limit_secs: float = 600.0,
) -> Dataset:
    """Returns a published data set; raises a `DownloadError` if it is not available."""
    folder = _data_folder(data.name, data_dir)
    files = published.read_folder(folder)
    if len(files) < len(published.FILES):
        # Verify first, before other files are searched or downloaded.
        published.verify(data, files)
        places = [folder]
        if data.keras_archive:
            keras = os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras")
            places.append(Path(keras, "datasets"))
            for archive in (place / data.keras_archive for place in places):
                if os.path.isfile(archive):
                    files = published.read_keras_archive(archive)
                    return published.assemble(data, files, str(archive))
        missing = [name for name in published.FILES if name not in files]
        try:
            download(data, missing, folder, say, limit_secs)
        except DownloadError as error:
            raise DownloadError(
                f"{data.title} is not in {' nor in '.join(map(str, places))}, and could not "
                f"be downloaded: {error}; name a folder that holds it with --data_dir, or use "
                "--dataset=digits"
            ) from error
        files = published.read_folder(folder)
    return published.assemble(data, files, str(folder))


def choose(
    data: Published,
    data_dir: DataDir,
    say: Callable[[str], None],
    limit_secs: float = 18.0,  # Users wait for at most 20 s; two of these are for the digits.
) -> Dataset:
    """Returns a published data set if it is available soon, else the digits; reports the choice.

    The digits replace only files that cannot be downloaded. A file in the folder that is not the
    published one still raises an error, since the user has to replace it.
    """
    try:
        dataset = obtain(data, data_dir, say, limit_secs)
    except DownloadError as error:
        say(
            f"WARNING: the data set is scikit-learn's digits (1,797 images), NOT "
            f"{data.title}: {error}"
        )
        return digits.load()
    say(f"the data set is {data.title}, from {dataset.source}")
    return dataset


def _data_folder(name: str, data_dir: DataDir) -> Path:
    """Returns the folder of a data set, which need not exist: the given one or the cache's."""
    named = os.fspath(data_dir or os.environ.get("MNIST_DATA_DIR") or "")
    if not named:
        cache = os.environ.get("XDG_CACHE_HOME") or ""
        # The XDG specification says that a relative path in this variable is ignored.
        cache = cache if os.path.isabs(cache) else os.path.expanduser("~/.cache")
        return Path(cache, "compat-experiments", name)
    folder = Path(os.path.expanduser(named))
    if os.path.isfile(folder):
        raise UserError(
            f"data_dir {folder} is a file, expected the folder that holds the data set; "
            "name a folder with --data_dir"
        )
    return folder
