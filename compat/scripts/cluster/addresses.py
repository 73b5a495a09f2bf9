"""Where the hosts that a script names really are: `--hosts OLD=NEW,...` and `--local`."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import getpass
import hashlib
import json
import os
import re
import tempfile
from typing import Any, Iterator, Mapping

from compat.cluster import ports
from compat.cluster.address import split_address
from compat.errors import UserError
from compat.scripts.cluster import environment

_ADDRESS = re.compile(r"\s*(grpc://)?\s*([^\s:/]+)\s*:\s*([0-9]{1,5})\s*")

_said: set[str] = set()


def parse(option: str) -> dict[str, str]:
    """Returns what `--hosts` says, "pc-01:2222=127.0.0.1:5001,...", as a mapping.

    Raises:
      UserError: it is malformed.
    """
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
    """Puts every host that the script names on this machine.

    All processes of a run agree on the ports by a file. Those that are started one by one in
    several terminals find it by the script's name.
    """
    name = hashlib.sha256(os.path.realpath(script).encode()).hexdigest()[:16]
    folder = tempfile.gettempdir()
    os.environ.setdefault(
        environment.PORTS, os.path.join(folder, f"compat-{getpass.getuser()}-{name}.json")
    )


def active() -> bool:
    """Whether hosts are elsewhere than the script says."""
    return bool(os.environ.get(environment.PORTS) or os.environ.get(environment.HOSTS))


def mapped(address: str) -> str:
    """Returns where an address of the script is; mends stray spaces.

    Args:
      address: "host:port", or "grpc://host:port"; anything else is returned as it is.
    """
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return address
    scheme, host, port = found.groups()
    plain = f"{host}:{port}"
    if (scheme or "") + plain != address:
        mend(f"address {address!r}", f"{(scheme or '') + plain!r}")
    hosts = json.loads(os.environ.get(environment.HOSTS, "{}"))
    new = hosts.get(plain)
    if new is None and os.environ.get(environment.PORTS) and plain not in _agreed().values():
        new = _agree(plain)
    return (scheme or "") + (new or plain)


def mapped_cluster(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a cluster, tasks by job as `ClusterSpec` takes them, with its addresses mapped."""
    jobs: dict[str, Any] = {}
    counts = json.loads(os.environ.get(environment.COUNTS, "{}"))
    for job, tasks in cluster.items():
        if isinstance(tasks, (list, tuple)) and counts.get(job, len(tasks)) != len(tasks):
            # The script's hosts may be more or fewer than the tasks that were started.
            mend(f"its job {job!r} of {len(tasks)}", f"one of {counts[job]}, as --cluster says")
            extra = [f"{job}-{i}.local:2222" for i in range(len(tasks), counts[job])]
            tasks = [*tasks, *extra][: counts[job]]
        if isinstance(tasks, Mapping):
            jobs[job] = {index: mapped(task) for index, task in tasks.items()}
        else:
            jobs[job] = [mapped(task) for task in ([tasks] if isinstance(tasks, str) else tasks)]
    return jobs


def mapped_tf_config(text: str) -> str:
    """Returns TF_CONFIG with the addresses of its cluster mapped; what is malformed, as it is."""
    try:
        config = json.loads(text)
        config["cluster"] = mapped_cluster(config["cluster"])
    except UserError:  # Of what maps it.
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return text
    return json.dumps(config)


def mend(what: str, by: str) -> None:
    """Says, once, that something in the script was mended."""
    line = f"compat: {what} is taken for {by}"
    if line not in _said:
        _said.add(line)
        print(line, flush=True)


@contextlib.contextmanager
def _file() -> Iterator[dict[str, str]]:
    """Holds the file with the ports; what is changed inside is written back."""
    path = os.environ[environment.PORTS]
    try:
        # Its folder may be everybody's: a link or file that another user has put there is refused.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        if os.fstat(descriptor).st_uid != os.geteuid():
            os.close(descriptor)
            raise PermissionError(errno.EPERM, "it is another user's")
    except OSError as error:
        raise UserError(
            f"{path} cannot hold the ports ({error.strerror}), expected a file of yours or none; "
            "remove it and start all tasks again"
        ) from None
    with os.fdopen(descriptor, "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            agreed = json.loads(file.read() or "{}")
            for address in agreed.values():
                split_address(address)
        except (ValueError, AttributeError, RecursionError, UserError):
            raise UserError(
                f"{path} holds no ports, as it should; remove it and start all tasks again"
            ) from None
        yield agreed
        file.seek(0)
        file.truncate()
        file.write(json.dumps(agreed))


def _agreed() -> dict[str, str]:
    with _file() as agreed:
        return dict(agreed)


def _agree(address: str) -> str:
    with _file() as agreed:
        while address not in agreed:
            with ports.reserve() as reservation:
                if reservation.address not in agreed.values():
                    agreed[address] = reservation.address
        return agreed[address]
