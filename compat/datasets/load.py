"""Data sets by name: from the disk if they are there, else from the network."""

from __future__ import annotations

import os
from typing import Callable, Mapping, Union

from compat.datasets import digits, idx_set, keras_archive
from compat.datasets.dataset import Dataset
from compat.datasets.download import STALL_SECS, DownloadError, download
from compat.datasets.folders import data_folder, keras_folder
from compat.datasets.published import FASHION_MNIST, FILES, MNIST, Published
from compat.errors import UserError

NAMES = ("mnist", "fashion_mnist", "digits", "auto")

LIMIT_SECS = 600.0
AUTO_LIMIT_SECS = 18.0  # of the 20 s that a user waits at most, two are for loading the digits

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
        return obtain(MNIST, data_dir, say=say)
    if name == "fashion_mnist":
        return obtain(FASHION_MNIST, data_dir, say=say)
    if name == "digits":
        return digits.load()
    if name == "auto":
        return choose(MNIST, data_dir, say=say)
    raise UserError(
        f"data set {name!r} is unknown, expected one of {', '.join(NAMES)}; give another --dataset"
    )


def obtain(
    published: Published,
    data_dir: DataDir,
    *,
    say: Callable[[str], None],
    environ: Mapping[str, str] = os.environ,
    limit_secs: float = LIMIT_SECS,
    stall_secs: float = STALL_SECS,
) -> Dataset:
    """Returns a published data set, from the disk or the network.

    Raises:
      BrokenFileError: a file is there, but not the published one.
      DownloadError: the data set is not there, and cannot be downloaded or stored.
      UserError: `data_dir` is a file.
    """
    folder = data_folder(published.name, data_dir, environ)
    files = idx_set.read(folder)
    if len(files) < len(FILES):
        idx_set.verify(published, files)  # before more is looked for, or downloaded beside them
        places = [folder]
        if published.keras_archive:
            places.append(keras_folder(environ))
            for archive in (place / published.keras_archive for place in places):
                if os.path.isfile(archive):
                    return idx_set.assemble(published, keras_archive.read(archive), str(archive))
        try:
            download(
                published,
                [name for name in FILES if name not in files],
                folder,
                say=say,
                limit_secs=limit_secs,
                stall_secs=stall_secs,
            )
        except DownloadError as error:
            raise DownloadError(
                f"{published.title} is not in {' nor in '.join(map(str, places))}, and could not "
                f"be downloaded: {error}; name a folder that holds it with --data_dir, or use "
                "--dataset=digits"
            ) from error
        files = idx_set.read(folder)
    return idx_set.assemble(published, files, str(folder))


def choose(
    published: Published,
    data_dir: DataDir,
    *,
    say: Callable[[str], None],
    environ: Mapping[str, str] = os.environ,
    limit_secs: float = AUTO_LIMIT_SECS,
    stall_secs: float = STALL_SECS,
) -> Dataset:
    """Returns a published data set if it can be had soon, else the digits, and says which.

    Raises:
      BrokenFileError: a file is there, but not the published one: the digits are no remedy.
      UserError: `data_dir` is a file.
    """
    try:
        dataset = obtain(
            published,
            data_dir,
            say=say,
            environ=environ,
            limit_secs=limit_secs,
            stall_secs=stall_secs,
        )
    except DownloadError as error:
        say(
            f"WARNING: the data set is scikit-learn's digits (1,797 images), NOT "
            f"{published.title}: {error}"
        )
        return digits.load()
    say(f"the data set is {published.title}, from {dataset.source}")
    return dataset
