"""Maps the addresses in a script to real ones, for `--hosts OLD=NEW,...` and `--local`."""

from __future__ import annotations

import errno
import fcntl
import functools
import getpass
import hashlib
import json
import os
import re
import tempfile
from typing import Any, Mapping

from compat.cluster import ports
from compat.cluster.address import split_address
from compat.errors import UserError, unless_usable
from compat.scripts.clusters import inherited

_ADDRESS = re.compile(r"\s*(grpc://)?\s*([^\s:/]+)\s*:\s*([0-9]{1,5})\s*")


def parse(option: str) -> dict[str, str]:
    """Parses `--hosts`, such as "pc-01:2222=127.0.0.1:5001,...", into a mapping."""
    mapping = {}
    for part in filter(None, (word.strip() for word in option.split(","))):
        old, equals, new = part.partition("=")
        if not equals or not _ADDRESS.fullmatch(old) or not _ADDRESS.fullmatch(new):
            raise UserError(
                f"--hosts has {part!r}, expected HOST:PORT=HOST:PORT; "
                "write it as in --hosts pc-01:2222=127.0.0.1:5001"
            )
        split_address(new.strip())
        mapping[old.strip()] = new.strip()
    return mapping


def place_here(script: str) -> None:
    """Maps every host that the script names to this machine.

    Tasks may be started one by one, in terminals. They share their ports in a file that is named
    after the script.
    """
    digest = hashlib.sha256(os.path.realpath(script).encode()).hexdigest()[:16]
    name = f"compat-{getpass.getuser()}-{digest}.json"
    os.environ.setdefault(inherited.PORTS, os.path.join(tempfile.gettempdir(), name))


def active() -> bool:
    """Returns whether any address of the script is mapped."""
    return bool(os.environ.get(inherited.PORTS) or os.environ.get(inherited.HOSTS))


def mapped(address: str) -> str:
    """Returns the address that replaces "host:port" or "grpc://host:port", or the same text."""
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return address
    scheme, plain = match[1] or "", f"{match[2]}:{match[3]}"
    if scheme + plain != address:
        log_replacement(f"address {address!r}", f"{scheme + plain!r}")
    new = json.loads(os.environ.get(inherited.HOSTS, "{}")).get(plain)
    if new is None and os.environ.get(inherited.PORTS):
        new = _agree(plain)
    return scheme + (new or plain)


def mapped_cluster(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a cluster, in a form that `ClusterSpec` accepts, with its addresses mapped."""
    jobs: dict[str, Any] = {}
    counts = json.loads(os.environ.get(inherited.COUNTS, "{}"))
    for job, tasks in cluster.items():
        if isinstance(tasks, (list, tuple)) and counts.get(job, len(tasks)) != len(tasks):
            # The script may name more or fewer hosts than tasks were started.
            log_replacement(
                f"its job {job!r} of {len(tasks)}", f"one of {counts[job]}, the number started"
            )
            extra = [f"{job}-{i}.local:2222" for i in range(len(tasks), counts[job])]
            tasks = [*tasks, *extra][: counts[job]]
        if isinstance(tasks, Mapping):
            jobs[job] = {index: mapped(task) for index, task in tasks.items()}
        else:
            jobs[job] = [mapped(task) for task in ([tasks] if isinstance(tasks, str) else tasks)]
    return jobs


def mapped_tf_config(text: str) -> str:
    """Returns TF_CONFIG with its addresses mapped; returns malformed text unchanged."""
    try:
        config = json.loads(text)
        config["cluster"] = mapped_cluster(config["cluster"])
    except UserError:
        raise  # This is also a `ValueError`, but the mapping raised it.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return text
    return json.dumps(config)


@functools.lru_cache(maxsize=None)
def log_replacement(what: str, by: str) -> None:
    """Logs a replaced value of the script, once."""
    print(f"compat: {what} is replaced by {by}", flush=True)


def _agree(address: str) -> str:
    """Returns the address that replaces `address` in the file that the tasks share.

    An address that is itself a replacement is returned unchanged.
    """
    path = os.environ[inherited.PORTS]
    with os.fdopen(_open(path), "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            agreed: dict[str, str] = json.loads(file.read() or "{}")
            for known in agreed.values():
                split_address(known)
        except (ValueError, AttributeError, RecursionError, UserError):
            raise UserError(
                f"{path} does not hold ports; remove it and start all tasks again"
            ) from None
        if address in agreed.values():
            return address
        while address not in agreed:
            with ports.reserve() as reservation:
                if reservation.address not in agreed.values():
                    agreed[address] = reservation.address
        file.seek(0)
        file.truncate()
        file.write(json.dumps(agreed))
        return agreed[address]


def _open(path: str) -> int:
    """Opens or creates a file; refuses links and other users' files: its folder may be shared."""
    remedy = "expected your own file or none; remove it and start all tasks again"
    with unless_usable(f"{path} cannot hold the ports", remedy):
        # Refuse links, and files of other users.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        if os.fstat(descriptor).st_uid != os.geteuid():
            os.close(descriptor)
            raise PermissionError(errno.EPERM, "it belongs to another user")
    return descriptor
