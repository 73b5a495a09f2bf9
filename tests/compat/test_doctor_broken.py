"""Environments in which something is wrong, made for the purpose from the packages of this one."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

import compat

pytestmark = [pytest.mark.once, pytest.mark.long]
DEADLINE_SECS = 60
PACKAGES = Path(sysconfig.get_paths()["purelib"])
COMPAT = Path(compat.__file__).resolve().parent
# What takes seconds to load, and is not what a test is about.
LARGE = "tensorflow|tensorboard|mlflow"

# A TensorFlow that loads, and has neither servers nor coordinators.
HOLLOW = """
import sys, types
for name in ("compat", "compat.v1", "compat.v2"):
    sys.modules["tensorflow." + name] = types.ModuleType("tensorflow." + name)
v2 = sys.modules["tensorflow.compat.v2"]
devices = types.SimpleNamespace(list_physical_devices=lambda kind: [])
v2.config = types.SimpleNamespace(experimental=devices)
v2.distribute = types.SimpleNamespace(experimental=None)
"""


class Environment:
    """A virtual environment with links to the packages of this one.

    Args:
      folder: where it is made.
      without: a regular expression of the names that are left out, which "-" or the end follows.
    """

    def __init__(self, folder: Path, without: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", str(folder)],
            check=True,
            timeout=DEADLINE_SECS,
        )
        self.python = folder / "bin" / "python"
        self.temporary = folder / "temporary"
        (self._packages,) = folder.glob("lib/python3*/site-packages")
        left_out = re.compile(rf"({without})(-.*)?$|.*\.pth$", re.IGNORECASE)
        for path in [*PACKAGES.iterdir(), COMPAT]:
            target = self._packages / path.name
            if not left_out.match(path.name) and not target.exists():
                target.symlink_to(path)

    def claim(self, name: str, version: str) -> None:
        """Adds what pip writes of a package."""
        folder = self._packages / f"{name}-{version}.dist-info"
        folder.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (folder / "METADATA").write_text(text, encoding="utf-8")

    def add(self, name: str, code: str) -> None:
        """Adds a package with the given code."""
        (self._packages / name).mkdir()
        (self._packages / name / "__init__.py").write_text(code, encoding="utf-8")

    def start(self, *args: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        """Starts the command, in a process group of its own."""
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self.temporary.mkdir(exist_ok=True)
        return subprocess.Popen(
            [*before, str(self.python), "-m", "compat", "doctor", *args],
            env=dict(env, TMPDIR=str(self.temporary)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="ascii",
            start_new_session=True,
        )

    def doctor(self, *args: str, before: tuple[str, ...] = ()) -> list[str]:
        """Returns the page, of which a problem is expected; columns are one space apart."""
        with self.start(*args, before=before) as process:
            said, complaints = process.communicate(timeout=DEADLINE_SECS)
        assert (process.returncode, complaints) == (1, ""), said
        return [re.sub(" {2,}", " ", line) for line in said.splitlines()]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Has neither TensorFlow nor TensorBoard nor MLflow."""
    return Environment(tmp_path_factory.mktemp("small") / "environment", LARGE)


@pytest.fixture
def hanging(tmp_path: Path) -> Environment:
    """Has a TensorFlow that does not load, and writes its process id to the file `pid`."""
    environment = Environment(tmp_path / "environment", LARGE)
    environment.claim("tensorflow", "1.15.5")
    write = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()) + chr(10))"
    environment.add("tensorflow", f"import os, time\n{write}\nprint('busy')\ntime.sleep(600)\n")
    return environment


def commands(page: list[str]) -> list[str]:
    """Returns the commands that the page shows."""
    return [line.partition("fix with: ")[2] for line in page if "fix with: " in line]


def assert_installs_constrained(command: str) -> None:
    """Checks that a command names a file that is there."""
    constraints = re.findall(r" -m pip install (?:--\S+ )?-c (\S+) ", command)
    assert len(constraints) == 1, command
    assert Path(constraints[0]).is_file()


def test_one_command_installs_what_is_missing(small: Environment) -> None:
    page = small.doctor()
    for name in ("tensorflow", "tensorboard", "mlflow"):
        assert f"! {name} not installed" in page
    (command,) = commands(page)
    assert_installs_constrained(command)
    assert command.endswith(" tensorflow tensorboard mlflow")
    assert " legacy not tried: TensorFlow does not load" in page
    assert page[-1] == "3 problems"


@pytest.mark.parametrize(("python", "has_wheels"), [((3, 13), True), ((3, 14), False)])
def test_a_python_without_wheels_is_told_which_have(
    python: tuple[int, int], has_wheels: bool, small: Environment
) -> None:
    code = "import sys; from compat.doctor.packages import Packages as P\n"
    code += f"for finding in P({python}).findings(): print(finding)"
    printed = subprocess.run(
        [str(small.python), "-c", code], stdout=subprocess.PIPE, timeout=DEADLINE_SECS, check=True
    )
    said = printed.stdout.decode()
    assert ("; TensorFlow has wheels for 3.7 to 3.13" in said) != has_wheels
    # What is missing or wrong cannot be fixed here either.
    remedies = set(re.findall(r"remedy=(.+)\)$", said, re.MULTILINE)) - {"''"}
    assert ("'python3.13 -m venv .venv'" in remedies) != has_wheels
    assert has_wheels or len(remedies) == 1, said


@pytest.mark.parametrize("version", ["1.14.0", "2.3.1"])
def test_an_unsupported_line_is_replaced(version: str, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "environment", LARGE)
    environment.claim("tensorflow", version)
    environment.add("tensorflow", "raise ImportError('wrong line')")
    page = environment.doctor()
    assert f"! tensorflow found {version}, expected 1.15, or 2." in "\n".join(page)
    assert_installs_constrained(commands(page)[0])


def test_a_newer_line_is_tried_without_constraints(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "environment", LARGE)
    environment.claim("tensorflow", "2.99.0")
    environment.add("tensorflow", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    page = environment.doctor()
    assert " tensorflow 2.99.0" in page
    assert "! tensorflow fails: ended by SIGILL" in page
    assert " -c " not in commands(page)[0]


def test_a_protobuf_that_breaks_tensorflow_is_named(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "environment", f"{LARGE}|protobuf")
    environment.claim("tensorflow", "1.15.5")
    environment.claim("protobuf", "5.29.5")
    lines = ["Descriptors cannot be created directly.", "More information: https://example.org/"]
    environment.add("tensorflow", f"raise TypeError({chr(10).join(lines)!r})")
    page = environment.doctor()
    assert "! protobuf found 5.29.5, constrained to <3.21" in page
    assert "! tensorflow fails: TypeError: Descriptors cannot be created directly." in page
    assert commands(page)[0].endswith("/tf1.15.txt tensorflow tensorboard mlflow protobuf")
    assert page[-1] == "4 problems"


def test_a_package_that_tensorflow_cannot_use_is_named(tmp_path: Path) -> None:
    """Also where there is no constraint, by what TensorFlow says of itself."""
    environment = Environment(tmp_path / "environment", "tensorboard|mlflow|gast")
    environment.claim("gast", "0.0.1")
    environment.add("gast", "raise ImportError('too old')")
    page = "\n".join(environment.doctor())
    assert re.search(r"! gast found 0.0.1, tensorflow needs \S+\n", page), page
    assert "! tensorflow fails: ImportError: too old" in page


def test_setuptools_has_to_have_pkg_resources(tmp_path: Path) -> None:
    left_out = "tensorflow|mlflow|setuptools|pkg_resources|_distutils_hack|pip"
    environment = Environment(tmp_path / "environment", left_out)
    page = environment.doctor()
    assert "! setuptools not installed, tensorboard needs it" in page
    assert commands(page)[0].endswith(" tensorflow tensorboard mlflow 'setuptools<82'")
    assert " -m ensurepip && " in commands(page)[0]  # An environment without pip.


def test_a_runtime_that_fails_says_why(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "environment", LARGE)
    environment.claim("tensorflow", "1.15.5")
    environment.add("tensorflow", HOLLOW)
    page = environment.doctor()
    assert " tensorflow loads" in page
    assert re.search("\n! legacy fails: (ps|worker): AttributeError: .*v.", "\n".join(page)), page
    assert_installs_constrained(commands(page)[-1])
    assert " modern not in this TensorFlow; 2.4 and later have it" in page


def test_an_import_without_end_is_ended(hanging: Environment) -> None:
    page = hanging.doctor("--deadline=2")
    late = page.index("! tensorflow fails: no end after 2 s; said 'busy'")
    assert page[late + 1] == f" fix with: {hanging.python} -m compat doctor --deadline=10"


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_nothing_running(
    signum: signal.Signals, hanging: Environment, tmp_path: Path
) -> None:
    killed = signum == signal.SIGKILL
    with hanging.start(f"--deadline={10 if killed else 90}") as process:
        pid = loading(tmp_path / "pid")
        process.send_signal(signum)
        assert process.wait(timeout=60) in (128 + signum, -signum)
        assert process.stderr is not None
        assert process.stderr.read() == ""
        deadline = time.monotonic() + DEADLINE_SECS
        while runs(pid):  # After SIGKILL, up to its own deadline.
            assert time.monotonic() < deadline
            time.sleep(0.1)
    # Nobody can tidy up after SIGKILL.
    assert killed or not list(hanging.temporary.iterdir())


def loading(path: Path) -> int:
    """Waits for the process id in a file."""
    deadline = time.monotonic() + DEADLINE_SECS
    while not path.exists() or not path.read_text(encoding="ascii").endswith("\n"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return int(path.read_text(encoding="ascii"))


def runs(pid: int) -> bool:
    """Tells whether a process is there, other than as one whose end nobody has asked about."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_machine_without_loopback_is_told(small: Environment) -> None:
    namespace = ("unshare", "--map-root-user", "--net")
    with contextlib.suppress(FileNotFoundError):
        if subprocess.run([*namespace, "true"], timeout=DEADLINE_SECS).returncode == 0:
            page = small.doctor(before=namespace)
            assert "! ports none available on 127.0.0.1: " in "\n".join(page)
            assert commands(page)[-1] == "sudo ip link set lo up"
            return
    pytest.skip("this user may not make a network of its own")


def test_doctor_itself_says_what_it_lacks(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "environment", f"{LARGE}|packaging")
    with environment.start() as process:
        said, complaints = process.communicate(timeout=DEADLINE_SECS)
    assert (process.returncode, said) == (2, "")
    assert complaints.startswith("error: doctor reads versions with packaging, which is not")
    assert complaints.count("\n") == 1


def test_output_may_be_cut_off(small: Environment) -> None:
    with small.start() as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(DEADLINE_SECS) == 128 + signal.SIGPIPE
        assert process.stderr is not None
        assert process.stderr.read() == ""
