"""The image, really built, and three containers of it that train together.

Needs buildah, which works without a daemon, and debootstrap, which makes the base image, since no
registry can be relied on. Both are packages of Debian, and want root.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any, Iterator

import pytest

from compat.cluster.ports import reserve

ROOT = Path(__file__).resolve().parents[2]
MISSING = [name for name in ("buildah", "debootstrap") if shutil.which(name) is None]
pytestmark = [
    pytest.mark.once,
    pytest.mark.slow,
    pytest.mark.timeout(2400),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    pytest.mark.skipif(os.getuid() != 0, reason="debootstrap wants root"),
]
BUILD_SECS = 1800
TRAIN_SECS = 300
TASKS = [("ps", 0), ("worker", 0), ("worker", 1)]
# How this machine reaches its package index, without which nothing can be installed.
SETTINGS = [path for path in ("/etc/ssl/certs", "/etc/pip.conf") if os.path.exists(path)]
# Where debootstrap finds Debian; it knows one itself.
MIRROR = [mirror for mirror in [os.environ.get("DEBIAN_MIRROR")] if mirror]


class Builder:
    """buildah with a store of its own."""

    def __init__(self, folder: Path) -> None:
        self._store = ["--root", str(folder / "store"), "--runroot", str(folder / "run")]

    def command(self, *argv: str) -> list[str]:
        return ["buildah", *self._store, *argv]

    def __call__(self, *argv: str, seconds: int = BUILD_SECS) -> str:
        done = subprocess.run(
            self.command(*argv),
            cwd=str(ROOT),
            capture_output=True,
            timeout=seconds,
        )
        assert done.returncode == 0, (argv, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout.decode()


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    folder = tmp_path_factory.mktemp("buildah")
    build = Builder(folder)
    yield build
    build("rm", "--all")
    build("rmi", "--all", "--force")
    shutil.rmtree(str(folder), ignore_errors=True)


@pytest.fixture(scope="module")
def image(builder: Builder, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of the image of the Dockerfile, on a Debian with Python and nothing else."""
    root = tmp_path_factory.mktemp("debian")
    packages = "--include=python3,python3-venv,ca-certificates"
    subprocess.run(
        ["debootstrap", "--variant=minbase", packages, "bookworm", str(root), *MIRROR],
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=BUILD_SECS,
    )
    base = builder("from", "scratch").strip()
    builder("add", base, str(root), "/")
    builder("commit", base, "localhost/debian")
    builder("rm", base)
    shutil.rmtree(str(root))
    mounts = [f"--volume={path}:{path}:ro" for path in SETTINGS]
    argv = ["--isolation=chroot", "--format=docker", "--build-arg=BASE=localhost/debian", *mounts]
    builder("bud", *argv, "--file=deploy/Dockerfile", "--tag=localhost/training", ".")
    return "localhost/training"


class Container:
    """A container of the image and its one command."""

    def __init__(self, builder: Builder, image: str, folder: Path) -> None:
        self._builder = builder
        self._process: Any = None
        self.name = builder("from", "--name", f"task-{uuid.uuid4().hex}", image).strip()
        self.output = folder / f"{self.name}.txt"

    def command(self, *argv: str, logs: Path | None = None) -> list[str]:
        volume = [f"--volume={logs}:/logs"] if logs else []
        return self._builder.command("run", "--isolation=chroot", *volume, self.name, "--", *argv)

    def start(self, *argv: str, logs: Path | None) -> None:
        with self.output.open("wb") as out:
            self._process = subprocess.Popen(
                self.command(*argv, logs=logs),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def succeeds(self, *argv: str) -> bool:
        done = subprocess.run(self.command(*argv), timeout=TRAIN_SECS, stderr=subprocess.PIPE)
        return done.returncode == 0

    @property
    def said(self) -> str:
        return self.output.read_text(encoding="utf-8")

    def wait_until_it_says(self, text: str) -> None:
        deadline = time.monotonic() + TRAIN_SECS
        while text not in self.said:
            assert self._process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.1)

    def wait(self) -> int:
        return self._process.wait(timeout=TRAIN_SECS)

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self.wait()


def settings(builder: Builder, image: str) -> Any:
    return json.loads(builder("inspect", "--type=image", image))["Docker"]["config"]


def test_image_says_what_it_is(builder: Builder, image: str) -> None:
    config = settings(builder, image)
    assert config["User"] == "training"
    assert config["Entrypoint"] == ["python", "-m", "experiments.mnist"]
    assert config["Healthcheck"]["Test"][0] == "CMD"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder that the user of the image may write to."""
    folder = tmp_path / "logs"
    folder.mkdir()
    os.chown(str(folder), 1000, 1000)
    return folder


@pytest.fixture
def containers(builder: Builder, image: str, tmp_path: Path) -> Iterator[list[Container]]:
    """A container for each task."""
    made = [Container(builder, image, tmp_path) for _ in TASKS]
    yield made
    for container in made:
        container.end()


def task_flags() -> list[list[str]]:
    """Returns the flags of each task, on ports that were free just now."""
    with reserve() as ps, reserve() as first, reserve() as second:
        hosts = [reservation.address for reservation in (ps, first, second)]
    flags = [f"--ps_hosts={hosts[0]}", f"--worker_hosts={','.join(hosts[1:])}", "--strategy=ps"]
    flags += ["--dataset=digits", "--optimizer=adam", "--max_steps=200", "--logdir=/logs"]
    flags += ["--shared_logdir", "--rendezvous_timeout=120"]
    return [[*flags, f"--job_name={job}", f"--task_index={index}"] for job, index in TASKS]


def test_containers_train_together(
    builder: Builder, image: str, containers: list[Container], logs: Path
) -> None:
    config = settings(builder, image)
    health = config["Healthcheck"]["Test"][1:]
    for container, flags in zip(containers, task_flags()):
        container.start(*config["Entrypoint"], *flags, logs=logs)
        if "--job_name=ps" in flags:
            container.wait_until_it_says("waits until the chief has seen")
            port = flags[0].rpartition(":")[2]
            assert container.succeeds("env", f"TASK_PORT={port}", *health)
            assert not container.succeeds("env", "TASK_PORT=1", *health)
    codes = [container.wait() for container in containers]
    said = [container.said for container in containers]
    assert codes == [0, 0, 0], said
    assert "\ndone\n" in said[1]
    assert (logs / "checkpoint").stat().st_uid == 1000


def test_container_without_the_shared_folder_is_named(
    builder: Builder, image: str, containers: list[Container], logs: Path
) -> None:
    entrypoint = settings(builder, image)["Entrypoint"]
    for container, flags in zip(containers, task_flags()):
        mounted = None if container is containers[2] else logs
        container.start(*entrypoint, *flags, logs=mounted)
    assert [container.wait() for container in containers] == [2, 2, 2]
    line = (
        "to /logs is not seen by /job:worker/task:1 at its /logs; mount one folder on all machines"
    )
    for container in containers:
        assert line in container.said
    assert list(logs.iterdir()) == []
