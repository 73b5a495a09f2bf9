"""The pages keep their word: docs/program.md runs on both runtimes, and all commands exist."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator, Tuple

import pytest
from absl import flags

from compat.cluster.ports import reserve
from compat.scripts.commands import run
from experiments import launch
from experiments.launching import command_line
from experiments.mnist import MNIST
from experiments.training import main
from tests.conftest import PACKAGES

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    """Returns the code blocks of a page."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (text,) = blocks(ROOT / "docs" / "program.md", "python")
    path: Path = tmp_path_factory.mktemp("readme") / "train.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_program_takes_less_than_forty_lines(program: Path) -> None:
    assert len(program.read_text(encoding="utf-8").splitlines()) < 40


def test_the_readme_is_short_and_begins_with_the_experiment_that_is_tested() -> None:
    readme = ROOT / "README.md"
    assert len(readme.read_text("utf-8").splitlines()) <= 150
    (shown,) = blocks(readme, "python")
    assert shown == blocks(ROOT / "docs" / "experiments.md", "python")[0]


Task = Tuple[str, int]


@contextlib.contextmanager
def started(
    program: Path, runtime: str, folder: Path, start_program: Callable[..., Any]
) -> Iterator[dict[Task, Any]]:
    """Starts the program as a cluster; yields its processes, which write to "JOB-INDEX"."""
    tasks = [("worker", 1), ("worker", 0), ("ps", 0)]
    running = {}
    with contextlib.ExitStack() as stack:
        ports = {task: stack.enter_context(reserve()) for task in tasks}
        hosts = {
            f"--{job}_hosts": ",".join(ports[t].address for t in sorted(tasks) if t[0] == job)
            for job in ("ps", "worker")
        }
        for job, index in tasks:
            flags = {"--runtime": runtime, "--logdir": folder / "logs", **hosts}
            flags.update({"--job_name": job, "--task_index": index})
            env, pass_fds = ports[job, index].pass_to_child()
            with (folder / f"{job}-{index}").open("wb") as said:
                process = start_program(
                    [sys.executable, str(program), *(f"{k}={v}" for k, v in flags.items())],
                    cwd=folder,
                    env=dict(os.environ, PYTHONPATH=PACKAGES, TF_CPP_MIN_LOG_LEVEL="3", **env),
                    stdout=said,
                    stderr=said,
                    pass_fds=pass_fds,
                )
            stack.callback(end, process)
            running[job, index] = process
            ports[job, index].release()
        yield running


def end(process: Any) -> None:
    """Ends it by its id, unless it has ended."""
    with contextlib.suppress(ProcessLookupError):
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)


@pytest.mark.cluster
def test_program_trains_on_either_runtime_by_one_flag(
    program: Path, runtime: str, tmp_path: Path, start_program: Callable[..., Any]
) -> None:
    with started(program, runtime, tmp_path, start_program) as running:
        codes = [process.wait(150) for process in running.values()]
    said = [path.read_text("utf-8") for path in tmp_path.glob("*-*")]
    assert codes == [0, 0, 0], said
    # On the legacy runtime either worker may see a step that is a multiple of 200.
    costs = [float(cost) for text in said for cost in re.findall(r"Cost: (\S+)", text)]
    assert costs, said
    assert costs[-1] < 1.0
    assert list(tmp_path.glob("logs/model.ckpt-*.index"))
    assert len(list(tmp_path.glob("logs/events.out.tfevents.*"))) == 1


@pytest.mark.cluster
@pytest.mark.endings
def test_program_names_a_lost_peer(
    program: Path, runtime: str, tmp_path: Path, start_program: Callable[..., Any]
) -> None:
    longer = tmp_path / "longer.py"
    text = program.read_text("utf-8")
    longer.write_text(text.replace("planned_step < 1000", "planned_step < 10**6"), "utf-8")
    with started(longer, runtime, tmp_path, start_program) as running:
        deadline = time.monotonic() + 150
        while "Step: " not in "".join(path.read_text("utf-8") for path in tmp_path.glob("w*-*")):
            assert time.monotonic() < deadline, "no step"
            time.sleep(0.05)
        os.kill(running["ps", 0].pid, signal.SIGKILL)
        assert running["worker", 0].wait(150) == 138
    said = (tmp_path / "worker-0").read_text("utf-8")
    assert said.splitlines()[-1].startswith("error: lost /job:ps/task:0 at 127.0.0.1:")
    assert "Traceback" not in said


def commands() -> list[str]:
    """Returns the lines of all shell blocks, with what stands for $FLAGS put in."""
    found = set()
    for page in PAGES:
        given = ""
        for line in "".join(blocks(page, "sh")).splitlines():
            command = line.split("#")[0].strip().replace("$FLAGS", given)
            if command.startswith("FLAGS="):
                (given,) = shlex.split(command[len("FLAGS=") :])
            elif command:
                found.add(command)
    return sorted(found)


def test_pages_have_commands() -> None:
    assert any(command.startswith("make mnist") for command in commands())
    assert len(trainings()) > 15


def trainings() -> list[str]:
    """Returns the commands that train."""
    found = [command for command in commands() if "experiments.mnist" in command]
    return [c for c in found if "experiments.launch" not in c and "experiments.sweep" not in c]


def launches() -> list[str]:
    return [command for command in commands() if "experiments.launch" in command]


@pytest.mark.parametrize("command", trainings())
def test_training_commands_are_understood(command: str) -> None:
    values = flags.FlagValues()
    main.define_flags(MNIST.Settings, MNIST.presets, values=values)
    words = shlex.split(command.split("experiments.mnist")[1])
    assert len(command_line.parse(["mnist", *words], values)) == 1
    assert main.read_flags(MNIST, values)


@pytest.mark.parametrize(
    "module", ["experiments.classics.matpow", "experiments.classics.shared_queue"]
)
def test_flags_of_other_programs_are_known(module: str) -> None:
    own = [shlex.split(c.split(module)[1]) for c in commands() if module in c]
    assert own
    check = f"import {module} as program\nfor words in {own}:\n"
    check += "    assert len(program.command_line.parse(['', *words])) == 1, words"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, timeout=150)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("command", [c for c in commands() if "-m compat run" in c])
def test_commands_for_scripts_are_understood(command: str) -> None:
    words = shlex.split(command)
    options = run.parser().parse_args(words[words.index("run") + 1 :])
    assert options.script[0] in ("example.py", "train.py")


@pytest.mark.parametrize("command", launches())
def test_commands_for_any_program_are_understood(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = ("job_name", "task_index", "ps_hosts", "worker_hosts")
    for name in ("train.py", "example.py", "program.py", "train.sh"):
        text = "".join(f"flags.DEFINE_string('{flag}', '', '')\n" for flag in flags)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    words = [word for word in shlex.split(command)[3:] if not word.startswith("--log_dir")]
    is_dry = "--dry_run" in words
    assert launch.main(words if is_dry else ["--dry_run", *words]) == 0
    if is_dry:
        assert capsys.readouterr().out in blocks(ROOT / "docs" / "launching.md", "text")


@pytest.mark.parametrize("command", [c for c in commands() if c.startswith("make ")])
def test_make_targets_exist(command: str) -> None:
    target = command.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def made(folder: Path, target: str) -> str:
    """Returns the commands by which make makes a target in a copy of what installing is made of."""
    words = ["make", "-n", f"PYTHON={sys.executable}", target]
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, timeout=150, check=True)
    return done.stdout.decode()


def test_training_waits_for_no_tool_of_development(tmp_path: Path) -> None:
    for name in ("Makefile", "setup.cfg"):
        shutil.copy(str(ROOT / name), str(tmp_path))
    shutil.copytree(str(ROOT / "requirements"), str(tmp_path / "requirements"))
    first, all_of_it = made(tmp_path, "mnist"), made(tmp_path, "test")
    assert "install --python .venv/bin/python -e '.[scripts]' -c " in first
    assert "dev" not in re.findall(r"-e '(.*?)'", first)[0]
    assert "-e '.[test,scripts,dev]'" in all_of_it
    for line in (first + all_of_it).splitlines():  # Whoever waits sees that something happens.
        assert "-qq" not in line or " -e " not in line, line
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / ".venv" / "installed").touch()
    assert "install" not in made(tmp_path, "mnist")
    rest = made(tmp_path, "test")
    assert "-e '.[test,scripts,dev]'" in rest
    assert "venv --clear" not in rest
    (tmp_path / ".venv" / "develops").touch()
    assert "install" not in made(tmp_path, "test")


@pytest.mark.parametrize("command", [c for c in commands() if "pip install" in c and " -c " in c])
def test_constraints_exist(command: str) -> None:
    words = shlex.split(command)
    assert (ROOT / words[words.index("-c") + 1]).is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
