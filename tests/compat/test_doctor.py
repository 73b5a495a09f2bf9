"""The page of an environment in which all is well, and what it is held against."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import compat
from compat import UserError
from compat.doctor import constraints, machine, main

DEADLINE_SECS = 800
MOST_LINES = 40


@pytest.fixture(scope="module")
def done() -> subprocess.CompletedProcess[str]:
    """One run of the command here, with proxies that lead nowhere."""
    packages = str(Path(compat.__file__).resolve().parents[1])
    proxies = {"http_proxy": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
    return subprocess.run(
        [sys.executable, "-m", "compat", "doctor", "--deadline=300"],
        env=dict(os.environ, PYTHONPATH=packages, CUDA_VISIBLE_DEVICES="-1", **proxies),
        capture_output=True,
        encoding="ascii",
        timeout=DEADLINE_SECS,
    )


@pytest.mark.long
@pytest.mark.cluster
def test_all_is_well_where_the_constraints_are_met(done: subprocess.CompletedProcess[str]) -> None:
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.endswith("\nall is well\n")
    assert "fix with" not in done.stdout
    assert done.stdout.count("\n") <= MOST_LINES


@pytest.mark.cluster
def test_each_runtime_is_tried_in_spite_of_proxies(
    done: subprocess.CompletedProcess[str], runtimes: list[str]
) -> None:
    assert re.findall(r"(?m)^  (\w+) +works \(\d+\.\d s\)$", done.stdout) == runtimes
    absent = re.findall(r"(?m)^  (\w+) +not in this TensorFlow; 2.4 and later", done.stdout)
    assert runtimes + absent == ["legacy", "modern"]


@pytest.mark.cluster
@pytest.mark.parametrize(
    "line",
    [
        r"Python +{python}, /.*",
        r"constraints +of TensorFlow \d.\d+, met: /.*/requirements/tf\d.\d+.txt",
        r"tensorflow +\d.\d+.\S+ +meets ==.*",
        r"protobuf +\d.*",
        r"numpy +\d.*",
        r"tensorflow +loads",
        r"tensorboard +loads",
        r"mlflow +loads",
        r"proxies +HTTPS_PROXY, http_proxy; clusters of compat bypass them",
        r"GPUs +0 seen by TensorFlow, CUDA_VISIBLE_DEVICES=-1",
        r"ports +available and reachable on 127.0.0.1.*",
        r"cores +\d+ usable of \d+.*",
    ],
)
def test_page_says(done: subprocess.CompletedProcess[str], line: str) -> None:
    line = line.replace("{python}", re.escape("{}.{}.{}".format(*sys.version_info)))
    assert re.search(f"(?m)^  {line}$", done.stdout), done.stdout


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (errno.EADDRINUSE, "ip_local_port_range"),
        (errno.EADDRNOTAVAIL, "ip link set lo up"),
        (errno.ENETUNREACH, "ip link set lo up"),
        (errno.EACCES, "iptables"),
        (errno.ECONNREFUSED, "iptables"),
        (None, "iptables"),  # As of `socket.timeout`.
    ],
)
def test_remedy_of_a_port_depends_on_the_error(number: int | None, word: str) -> None:
    assert word in machine.remedy(OSError(number, "said so") if number else OSError("timed out"))


def test_constraints_come_with_the_package() -> None:
    assert {"1.15", "2.20", "2.21"} <= set(constraints.lines())
    assert constraints.lines() == sorted(constraints.lines(), key=constraints.order)


@pytest.mark.parametrize("line", constraints.lines())
def test_each_file_constrains_its_own_line(line: str) -> None:
    pin = constraints.pins(line)["tensorflow"]
    (release,) = [specifier.version for specifier in pin.specifier]
    assert constraints.line_of(release) == line


@pytest.mark.parametrize(
    ("python", "newest"), [((3, 7), "2.11"), ((3, 8), "2.13"), ((3, 9), "2.20"), ((3, 13), "9.9")]
)
def test_a_python_gets_no_line_that_it_cannot_have(python: tuple[int, int], newest: str) -> None:
    line = constraints.line_for(python)
    assert line in constraints.lines()
    assert constraints.order(line) <= constraints.order(newest)


def test_newest_python_gets_a_line_that_is_released() -> None:
    pin = constraints.pins(constraints.line_for((3, 13)))["tensorflow"]
    assert not pin.specifier.prereleases


@pytest.mark.parametrize("seconds", ["0", "-1"])
def test_a_deadline_that_is_none_is_refused(seconds: str) -> None:
    with pytest.raises(UserError, match=f"--deadline={seconds} is out of range; use 1 to 86400"):
        main([f"--deadline={seconds}"])


def test_an_unknown_flag_is_a_wrong_command_line() -> None:
    with pytest.raises(UserError, match="--all; python -m compat doctor --help says more"):
        main(["--all"])
