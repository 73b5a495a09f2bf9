"""An experiment of one's own gets all that the programs of the package have."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from compat._tensorflow.release import profiler_module
from tests.experiments.conftest import Training

PROGRAMS = Path(__file__).parent / "programs"
DOCS = Path(__file__).parents[2] / "docs" / "experiments.md"
CLUSTER = ["--strategy=ps", "--num_ps=1", "--num_workers=2"]
CLICKS = ["--examples=30000", "--values=100", "--epochs=1"]

RunFile = Callable[..., Training]


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: Any, start_program: Any) -> Iterator[RunFile]:
    """Starts a file of a user's own, in a folder that has nothing else."""
    started: list[Training] = []

    def begin(file: Path, *flags: str, logdir: Path | None = None) -> Training:
        folder: Path = tmp_path_factory.mktemp("own")
        shutil.copy(str(file), str(folder / file.name))
        logdir = logdir or folder / "logs"
        argv = [sys.executable, file.name, *flags, f"--logdir={logdir}"]
        env = {"TF_CPP_MIN_LOG_LEVEL": "3"}
        started.append(Training(argv, folder, logdir, env, start_program))
        return started[-1]

    yield begin
    for training in started:
        training.end()


@pytest.fixture(scope="module")
def clusters(run_file: RunFile, runtimes: list[str]) -> dict[str, Training]:
    """The cancer file as a cluster with an evaluator, on each runtime."""
    flags = [*CLUSTER, "--evaluator", "--hidden=8", "--checkpoint_every=100"]
    flags += ["--profile_steps=0-50"] if profiler_module() else []
    running = {
        name: run_file(PROGRAMS / "cancer.py", *flags, f"--runtime={name}") for name in runtimes
    }
    return {name: training.wait() for name, training in running.items()}


@pytest.fixture
def cluster(clusters: dict[str, Training], runtime: str) -> Training:
    """The one of them on each runtime."""
    return clusters[runtime]


def test_own_lines_are_few() -> None:
    source = (PROGRAMS / "cancer.py").read_text()
    own = [line for line in source.splitlines() if line.strip() and not line.startswith('"""')]
    assert len(own) <= 45


def test_cluster_learns_and_ends(cluster: Training) -> None:
    assert cluster.code == 0, cluster.out + cluster.err
    assert cluster.err == ""
    (recall,) = re.findall(r"Test-Recall: (\d\.\d\d)", cluster.out)
    assert float(recall) > 0.85


def test_evaluator_keeps_the_best_by_the_monitor(cluster: Training) -> None:
    lines = (cluster.logdir / "evaluations.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert found
    best = max(found, key=lambda evaluation: evaluation["validation/recall"])
    indices = list((cluster.logdir / "best").glob("model.ckpt-*.index"))
    assert [path.stem for path in indices] == [f"model.ckpt-{best['step']}"]


def test_both_who_evaluate_draw_pictures(cluster: Training, record: Any) -> None:
    for folder in (cluster.logdir, cluster.logdir / "eval"):
        points = record(folder).points
        expected = [step for step, _ in points["validation/recall"]]
        assert len(expected) == len(set(expected))
        for name in ("confusion", "confusion/table", "pr_curve"):
            assert [step for step, _ in points[f"validation/{name}"]] == expected
    assert len(record(cluster.logdir).points["test/confusion"]) == 1


def test_chief_alone_is_profiled(cluster: Training) -> None:
    if profiler_module() is None:
        pytest.skip("no profiler")
    (trace,) = cluster.logdir.glob("plugins/profile/*/*.trace.json.gz")
    assert "[worker 0] profile from step 0 to " in cluster.out
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    assert any(event.get("name", "").startswith("train") for event in events)  # Or "train 0".


def test_record_has_curves_and_settings(cluster: Training, record: Any) -> None:
    recorded = record(cluster.logdir)
    assert {"train/loss", "validation/recall", "test/recall"} <= set(recorded.points)
    assert recorded.run[1] == "FINISHED"
    params = dict(recorded.select("select key, value from params"))
    assert (params["hidden"], params["batch_size"]) == ("8", "32")
    assert ("cancer",) in recorded.select("select name from experiments")


def test_settings_file_repeats_the_run(cluster: Training, run_file: RunFile) -> None:
    file = cluster.logdir / "settings.yaml"
    shown = run_file(PROGRAMS / "cancer.py", f"--config={file}", "--print_config").wait()
    assert (shown.code, shown.err) == (0, "")
    assert shown.out == file.read_text()
    assert "hidden: 8\n" in shown.out
    changed = run_file(
        PROGRAMS / "cancer.py", f"--config={file}", "--hidden=9", "--print_config"
    ).wait()
    assert "hidden: 9\n" in changed.out


def test_complete_run_resumes_with_more_epochs_on_the_other_runtime(
    cluster: Training, run_file: RunFile, runtime: str, runtimes: list[str], tmp_path: Path
) -> None:
    other = next((name for name in runtimes if name != runtime), runtime)
    logdir = tmp_path / "logs"
    assert cluster.left_running() == []  # Who sends the record adds and removes files there.
    shutil.copytree(str(cluster.logdir), str(logdir))
    resumed = run_file(
        PROGRAMS / "cancer.py",
        *(f"--runtime={other}", "--hidden=8", "--epochs=60"),
        logdir=logdir,
    ).wait()
    assert resumed.code == 0, resumed.out + resumed.err
    assert re.search(r"(?s)resuming from step 4\d\d in .*--epochs is 60, in the run", resumed.out)


def test_help_shows_own_settings(run_file: RunFile) -> None:
    shown = run_file(PROGRAMS / "cancer.py", "--help").wait()
    assert (shown.code, shown.err) == (0, "")
    assert "An experiment of a user's own" in shown.out
    assert re.search(r"\nof this experiment:\n  --hidden=\d+ +Hidden units\n", shown.out)
    whole = run_file(PROGRAMS / "cancer.py", "--help=all").wait().out
    assert "--hidden: Hidden units." in whole
    positions = [whole.index(f"\n{group}:\n") for group in ("cluster", "data", "model")]
    assert positions == sorted(positions)


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("--hidden=0", "--hidden=0 is too small; give 1 or more"),
        ("--learning_rate=nan", "--learning_rate=nan is not a positive number"),
    ],
)
def test_wrong_setting_is_one_line(run_file: RunFile, flag: str, sentence: str) -> None:
    refused = run_file(PROGRAMS / "cancer.py", flag).wait()
    assert refused.code == 2
    assert refused.err.startswith(f"error: {sentence}")
    assert refused.err.count("\n") == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "flags", "line", "least", "most"),
    [
        ("recommender", CLICKS, r"Test-Auc: (\d\.\d+)", 0.75, 0.9),
        pytest.param(
            "recommender",
            [*CLICKS, "--model=dlrm", "--optimizer=rowwise_adagrad"],
            r"Test-Auc: (\d\.\d+)",
            0.7,
            0.9,
            marks=pytest.mark.slow,
        ),
        ("classics.language_model", ["--epochs=2"], r"Test-Perplexity: (\d+\.\d+)", 3.7, 5.5),
        pytest.param(
            "classics.word2vec",
            ["--countries=8", "--kinds=6", "--words=40000", "--epochs=1"],
            r"Analogies: (\d\.\d+)",
            0.8,
            1.01,
            marks=pytest.mark.slow,
        ),
        ("classics.a3c", ["--updates=700"], r"Test-Return: (-?\d\.\d+)", 0.2, 0.83),
    ],
)
@pytest.mark.parametrize("place", [[], pytest.param(CLUSTER, marks=pytest.mark.slow)])
def test_program_learns(
    start: Any,
    module: str,
    flags: list[str],
    line: str,
    least: float,
    most: float,
    place: list[str],
    runtime: str,
    tmp_path: Path,
) -> None:
    training = start(
        *flags,
        *place,
        f"--runtime={runtime}",
        module=f"experiments.{module}",
        logdir=tmp_path / "logs",
    ).wait()
    assert training.code == 0, training.out + training.err
    (found,) = re.findall(line, training.out)
    assert least < float(found) < most


def _programs_of_the_docs() -> list[str]:
    """Returns the first program, the parts of the second one as one, and what imports it."""
    text = DOCS.read_text(encoding="utf-8")
    first, *parts, last = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return [first, "\n".join(parts), last]


@pytest.mark.parametrize("place", [[], pytest.param(CLUSTER, marks=pytest.mark.slow)])
def test_program_of_the_docs(
    run_file: RunFile, place: list[str], runtime: str, tmp_path: Path
) -> None:
    source = _programs_of_the_docs()[0]
    assert source.count("\n") <= 40
    file = tmp_path / "diabetes.py"
    file.write_text(source)
    training = run_file(file, *place, f"--runtime={runtime}").wait()
    assert training.code == 0, training.out + training.err
    (rmse,) = re.findall(r"Test-Rmse: (\d\.\d+)", training.out)
    assert 0.6 < float(rmse) < 0.85


@pytest.mark.long
def test_stream_of_the_docs_learns_in_a_cluster(
    run_file: RunFile, runtime: str, tmp_path: Path, record: Any
) -> None:
    file = tmp_path / "questions.py"
    file.write_text(_programs_of_the_docs()[1])
    flags = [*CLUSTER, f"--runtime={runtime}", "--eval_in_chief", "--clip_norm=1"]
    if runtime == "legacy":  # Both optimizers' gradients are averaged.
        flags += ["--sync", "--max_steps=60"]
    training = run_file(file, *flags).wait()
    assert training.code == 0, training.out + training.err
    (auc,) = re.findall(r"Test-Auc: (\d\.\d+)", training.out)
    assert float(auc) > 0.85
    assert f"AUC: {auc}, checkpoint: {training.logdir}/model.ckpt-60" in training.out
    # The table's gradient is sparse up to its update on the parameter server.
    events = b"".join(path.read_bytes() for path in training.logdir.glob("events.out.tfevents.*"))
    assert b"SparseApplyAdagrad" in events
    assert b"ResourceApplyAdagrad" not in events
    recorded = record(training.logdir)
    assert {"perplexity", "validation/accuracy", "best_test/auc"} <= set(recorded.points)


@pytest.mark.long
@pytest.mark.once
def test_python_use_of_the_docs(tmp_path: Path, start_program: Any) -> None:
    _, program, source = _programs_of_the_docs()
    (tmp_path / "questions.py").write_text(program)
    (tmp_path / "use.py").write_text(source)
    argv, env = [sys.executable, "use.py"], {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = Training(argv, tmp_path, None, env, start_program).wait()
    assert done.code == 0, done.out + done.err
    lines = re.findall(r"^(\d+) ([01]\.\d+) (\S+) (\w+)$", done.out, re.MULTILINE)
    step, auc, checkpoint, run_id = lines[-1]
    assert (step, checkpoint) == ("60", str(tmp_path / "runs" / "notebook" / "model.ckpt-60"))
    assert float(auc) > 0.85
    assert run_id == (tmp_path / "runs" / "notebook" / "mlflow_run_id").read_text().split()[0]


@pytest.mark.long
def test_use_from_python(runtime: str, tmp_path: Path, start_program: Any) -> None:
    argv = [sys.executable, str(PROGRAMS / "python_use.py"), runtime, str(tmp_path)]
    done = Training(argv, tmp_path, None, {"TF_CPP_MIN_LOG_LEVEL": "3"}, start_program).wait()
    assert done.code == 0, done.err
    report = json.loads(done.out.splitlines()[-1])
    assert [result["step"] for result in report["results"]] == [80, 40]  # Each from the beginning.
    for result in report["results"]:
        assert set(result["metrics"]) == {
            f"{split}/{name}"
            for split in ("validation", "test", "best_test")
            for name in ("loss", "recall")
        }
        assert Path(result["checkpoint"] + ".index").exists()
        assert result["run_id"] == Path(result["logdir"], "mlflow_run_id").read_text().split()[0]
    assert not [n for n in report["environment"] if n.startswith(("MLFLOW", "EXPERIMENTS"))]
    small, several, many, unlabelled = report["refusals"]
    assert small == "--hidden=0 is too small; give 1 or more"
    assert "a cluster needs processes of its own" in several
    assert many.startswith("--hidden=many is not an integer")
    assert unlabelled.startswith("AUC reads output 'truth', but the step returns ")


def test_programs_are_listed() -> None:
    command = [sys.executable, "-m", "experiments"]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=150)
    names = "a3c export launch language_model matpow mnist predict scaling shared_queue word2vec"
    for name in names.split():
        assert re.search(rf"^  {name} +\w", listed.stdout, re.MULTILINE)
    wrong = subprocess.run([*command, "minst"], capture_output=True, text=True, timeout=150)
    assert wrong.returncode == 2
    assert "'minst' is unknown, expected one of a3c, export, language_model," in wrong.stderr
