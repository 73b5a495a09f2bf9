"""Published data sets from their mirrors, verified before they have a name."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Callable, Iterable

from compat.datasets import idx, idx_set
from compat.datasets.published import Published
from compat.datasets.transfer import TransferError, named_when_whole, transfer
from compat.errors import UserError

STALL_SECS = 10.0


class DownloadError(UserError):
    """A data set that could not be had from any of its mirrors, or not be stored."""


def download(
    published: Published,
    names: Iterable[str],
    folder: Path,
    *,
    say: Callable[[str], None],
    limit_secs: float,
    stall_secs: float = STALL_SECS,
) -> None:
    """Downloads files of a data set, gzipped as they are served, into a folder.

    A file appears there whole and verified or not at all, also when several processes download at
    the same time. A mirror that failed once is not asked again. A terminal shows a progress bar.

    Args:
      published: what the files should hold, and where they are served.
      names: the files, without ".gz".
      folder: made when the first bytes have come.
      say: takes a line for each file that is there.
      limit_secs: for all files together.
      stall_secs: how long a mirror may be silent.

    Raises:
      DownloadError: no mirror has served a file in time, or the folder cannot be written.
    """
    deadline = time.monotonic() + limit_secs
    mirrors = list(published.mirrors)
    failures: list[str] = []
    for name in names:
        target = folder / (name + ".gz")
        while not os.path.isfile(target):
            if not mirrors:
                raise DownloadError("; ".join(failures))
            url = mirrors[0] + target.name
            try:
                _download_file(published, name, url, target, deadline, stall_secs)
            except TransferError as error:
                failures.append(f"{url}: {error}")
                del mirrors[0]
            except idx.BrokenFileError as error:
                failures.append(error.finding)
                del mirrors[0]
            except OSError as error:
                raise DownloadError(
                    f"{folder} cannot be written ({error.strerror}), expected a writable folder"
                ) from error
            else:
                say(f"downloaded {url} to {target} (SHA-256 of its contents verified)")


def _download_file(
    published: Published, name: str, url: str, target: Path, deadline: float, stall_secs: float
) -> None:
    from tqdm import tqdm

    with named_when_whole(target) as partial:
        with transfer(url, deadline, stall_secs) as (num_bytes, chunks):
            target.parent.mkdir(parents=True, exist_ok=True)
            # `disable=None`: a bar on a terminal, nothing elsewhere.
            with partial.open("xb") as stream, tqdm(
                total=num_bytes, desc=name, unit="B", unit_scale=True, leave=False, disable=None
            ) as progress:
                for chunk in chunks:
                    if stream.tell() + len(chunk) > idx.MAX_BYTES:
                        raise TransferError(f"more than {idx.MAX_BYTES:,} bytes")
                    stream.write(chunk)
                    progress.update(len(chunk))
        idx_set.verify(published, {name: idx.read(partial, origin=url)})
