"""Loads data sets by name: from the disk if they are there, else from the network."""

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
    """Loads a data set, and downloads it first if need be.

    MNIST and Fashion-MNIST are four IDX files, gzip or plain, in the folder `data_dir`, else
    `$MNIST_DATA_DIR`, else `$XDG_CACHE_HOME/compat-experiments/<name>`. MNIST is also taken from
    Keras's `mnist.npz`, in that folder or in Keras's own cache. Files that are missing are
    downloaded into that folder, as `read_data_sets("MNIST_data")` always did; those that are there
    are never replaced. Either way only the published data are taken, by checksum; the first 5,000
    training images are the validation split.

    "auto" is MNIST if it is there or comes within 20 s, else the digits, and says which and why.
    Processes that call it each decide for themselves: in a cluster let one of them call it, and
    give the others the name that it got.

    Args:
      name: one of `NAMES`.
      data_dir: the folder of MNIST or Fashion-MNIST; "digits" needs none.
      say: takes lines for the user: what was downloaded, and what "auto" has chosen.

    Raises:
      UserError: the name is unknown; a file in the folder is broken or not the published one (for
        "auto" too); or the data set is neither there nor can it be downloaded.
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
    """Returns a published data set; a `DownloadError` if it is not there and cannot be had."""
    folder = _data_folder(data.name, data_dir)
    files = published.read_folder(folder)
    if len(files) < len(published.FILES):
        published.verify(data, files)  # before more is looked for, or downloaded beside them
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
    limit_secs: float = 18.0,  # of the 20 s that a user waits at most, two are for the digits
) -> Dataset:
    """Returns a published data set if it can be had soon, else the digits, and says which.

    A file that is there, but not the published one, stays an error: the digits are no remedy.
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
    """Returns the folder of a data set, which need not exist: the named one, or in the cache."""
    named = os.fspath(data_dir or os.environ.get("MNIST_DATA_DIR") or "")
    if not named:
        cache = os.environ.get("XDG_CACHE_HOME") or ""
        # The XDG specification: a relative path in this variable is to be ignored.
        cache = cache if os.path.isabs(cache) else os.path.expanduser("~/.cache")
        return Path(cache, "compat-experiments", name)
    folder = Path(os.path.expanduser(named))
    if os.path.isfile(folder):
        raise UserError(
            f"data_dir {folder} is a file, expected the folder that holds the data set; "
            "name a folder with --data_dir"
        )
    return folder
