"""Models leave the log folder: plain TensorFlow loads them, and files are predicted from."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

from compat import datasets
from compat.cluster.ports import reserve
from tests.experiments.conftest import DEADLINE_SECS, Train, Training, _environment

Python = Callable[..., Training]
PROGRAMS = Path(__file__).parent / "programs"
PAGE = Path(__file__).parents[2] / "docs" / "export.md"
FLAGS = ("--max_steps=24", "--eval_every=12", "--eval_in_chief")
LOAD = """
import json, sys
import tensorflow as tf
tf = getattr(tf.compat, "v1", tf)
with tf.Graph().as_default(), tf.Session() as session:
    loaded = tf.saved_model.load(session, ["serve"], sys.argv[1])
    signature = loaded.signature_def["serving_default"]
    import numpy as np
    (images,) = [info.name for info in signature.inputs.values()]
    outputs = {name: info.name for name, info in signature.outputs.items()}
    found = session.run(outputs, {images: np.load(sys.argv[2])})
assert not {"compat", "experiments", "models"} & set(sys.modules)
print(json.dumps({name: value.tolist() for name, value in found.items()}))
"""


@pytest.fixture(scope="module")
def python(start_program: Any) -> Python:
    """Runs Python on arguments in a folder, to its end."""

    def run(folder: Path, *argv: str) -> Training:
        env = {"TF_CPP_MIN_LOG_LEVEL": "3"}
        return Training([sys.executable, *argv], folder, None, env, start_program).wait()

    return run


@pytest.fixture(scope="module")
def own(train: Train) -> Path:
    """The folder of an own file and of its run, on the legacy runtime, with digits to predict."""
    program = [PROGRAMS / "own_digits.py"]
    training = train(*FLAGS, "--runtime=legacy", module="own_digits", files=program).wait()
    assert training.code == 0, training.out + training.err
    assert training.left_running() == []  # MLflow has the run.
    np.save(str(training.folder / "digits.npy"), datasets.load("digits").test.images[:2])
    (training.folder / "run").symlink_to(training.logdir)
    return training.folder


def command_in_mlflow(recorded: Any) -> list[str]:
    """Returns what the Description of a run in MLflow says adds the model to it."""
    ((text,),) = recorded.select("select value from tags where key = 'mlflow.note.content'")
    (command,) = re.findall(r"```sh\npython -m experiments\.(export .+)\n```", text)
    return shlex.split(command)


@pytest.fixture(scope="module")
def calls(own: Path, python: Python, record: Any) -> dict[str, str]:
    """What each call, all in one process, printed or refused."""
    shutil.copytree(str(own / "run"), str(own / "unknown"))
    (own / "unknown" / "program.json").unlink()
    shutil.copytree(str(own / "run"), str(own / "moved"))
    text = (own / "moved" / "program.json").read_text()
    (own / "moved" / "program.json").write_text(text.replace("own_digits.py", "gone.py"))
    (own / "empty").mkdir()
    (own / "loud.py").write_text("import sys\nsys.exit(3)\n")
    (own / "lines.jsonl").write_text('{"images": [[0.5]]}\n')
    made = {
        "first": ["export", "run"],
        "again": ["export", "run"],
        "last": ["export", "run", "--checkpoint=last", "--output=served/1"],
        "mlflow": [*command_in_mlflow(record(own / "run")), "--output=logged"],
        "register": ["export", "run", "--register=own", "--output=registered"],
        "register again": ["export", "run", "--register=own", "--output=registered again"],
        "tflite": ["export", "run", "--format=tflite", "--output=digits.tflite"],
        "predict": ["predict", "run", "--input=digits.npy"],
        "to a file": ["predict", "run", "--input=digits.npy", "--output=found.jsonl"],
        "broken": ["predict", "run", "--input=lines.jsonl", "--output=broken.jsonl"],
        "no folder": ["export", "nothing"],
        "no checkpoint": ["export", "empty"],
        "unknown": ["export", "unknown"],
        "named": ["export", "unknown", "--program=own_digits.py"],
        "moved": ["export", "moved"],
        "loud": ["export", "moved", "--program=loud.py"],
        "other": ["export", "moved", "--program=experiments.recommender"],
    }
    done = python(own, str(PROGRAMS / "export.py"), json.dumps(list(made.values())))
    assert done.code == 0, done.err
    return dict(zip(made, json.loads(done.out.splitlines()[-1])))


def test_signature_has_the_inputs_that_outputs_depend_on(calls: dict[str, str]) -> None:
    assert re.sub(r"\b(12|24)\b", "N", calls["first"]) == (
        "run/export/N: step N, the best checkpoint of run\n"
        "  input  images: uint8 [None, 28, 28]\n"
        "  output digit: int64 [None]\n"
        "  output from_the_end: int64 [None]\n"
    )
    assert calls["last"].startswith("served/1: step 24, the last checkpoint of run\n")


def test_predictions_are_a_line_for_each_row(own: Path, calls: dict[str, str]) -> None:
    rows = [json.loads(line) for line in calls["predict"].splitlines()]
    assert [sorted(row) for row in rows] == [["digit", "from_the_end"]] * 2
    # What data() stored is there.
    assert all(row["digit"] + row["from_the_end"] == 9 for row in rows)
    assert (own / "found.jsonl").read_text() == calls["predict"]


@pytest.mark.once  # TensorFlow 2.4 converts no model whose inputs are uint8.
def test_model_for_tflite(own: Path, calls: dict[str, str], runtimes: list[str]) -> None:
    if len(runtimes) > 1:
        assert (own / "digits.tflite").read_bytes()[4:8] == b"TFL3"
    else:  # 1.15 converts by a program of its own, which is not on every path.
        assert re.match("digits.tflite: step|error: the model cannot be conv", calls["tflite"])


def test_model_is_logged_to_the_run_of_mlflow(
    own: Path, calls: dict[str, str], record: Any
) -> None:
    recorded = record(own / "run")
    run, status = recorded.run
    assert calls["mlflow"].splitlines()[-1] == f"  mlflow runs:/{run}/model"
    assert status == "FINISHED"
    ((uri,),) = recorded.select("select artifact_uri from runs")
    described = next(Path(uri[len("file://") :]).parents[1].rglob("MLmodel"))
    text = described.read_text()
    assert "loader_module: mlflow_loader" in text
    assert "uint8" in text
    assert list(described.parent.glob("*example*"))


def test_best_version_has_the_alias(own: Path, calls: dict[str, str], record: Any) -> None:
    if sys.version_info < (3, 8):  # Whose last MLflow is 1.30.
        assert "needs the aliases of MLflow 2.3" in calls["register"]
        return
    first, again = (calls[call].splitlines()[-1] for call in ("register", "register again"))
    assert re.fullmatch(r"  mlflow own 1, validation/accuracy [\d.]+, models:/own@best now", first)
    assert re.fullmatch(
        r"  mlflow own 2, validation/accuracy [\d.]+; version 1 is not worse", again
    )
    aliases = record(own / "run").select("select alias, version from registered_model_aliases")
    assert aliases == [("best", 1)]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ("again", r"run/export/\d+ exists; remove it, or name another with --output"),
        ("broken", r"--input=lines.jsonl, line 1: input 'images' is float64 \[1, 1\] a row; exp"),
        ("no folder", "LOGDIR=nothing is not a folder; name the log folder of a run"),
        ("no checkpoint", "empty has no checkpoint; name the log folder of a run that has"),
        ("unknown", "unknown does not record the program of its run; name it with --program=FILE"),
        ("moved", r"program \S*/gone.py of the run in moved is not a file; name the file with"),
        ("loud", "program loud.py runs when it is imported; call run()"),
        ("other", "program experiments.recommender does not define the class OwnDigits of the"),
    ],
)
def test_what_is_wrong_takes_one_line(calls: dict[str, str], call: str, sentence: str) -> None:
    assert re.match("error: " + sentence, calls[call]), calls[call]


def test_nothing_is_half_written(own: Path, calls: dict[str, str]) -> None:
    assert calls["named"].startswith("unknown/export/")
    left = {path.name for path in own.iterdir()}
    assert "broken.jsonl" not in left
    assert [name for name in left if name.startswith(".")] == []


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def page(tmp_path_factory: Any, own: Path, python: Python) -> tuple[Path, list[str]]:
    """A folder in which the commands of the page ran, up to MLflow's, and what they printed."""
    folder: Path = tmp_path_factory.mktemp("page")
    (folder / "runs" / "1").mkdir(parents=True)
    # It saves MLflow the making of a store, which takes seconds.
    shutil.copy(str(own / "mlflow.db"), str(folder))
    (digits,) = [block for block in blocks("python") if "digits.npy" in block]
    assert python(folder, "-c", digits).code == 0
    said = []
    for command in "".join(blocks("sh")[:2]).splitlines():
        done = python(folder, *shlex.split(command)[1:])
        assert (done.code, done.err) == (0, ""), command + done.out + done.err
        said.append(done.out)
    return folder, said


@pytest.mark.once
def test_commands_print_what_the_page_shows(page: tuple[Path, list[str]]) -> None:
    _, (_, exported, predicted) = page
    signature, _, rows, *_ = blocks("text")
    assert exported.splitlines()[1:] == signature.splitlines()[1:]
    assert re.match(r"runs/1/export/(60|120): step \1, the best checkpoint of runs/1\n", exported)
    assert [line[:11] for line in predicted.splitlines()] == [
        line[:11] for line in rows.splitlines()
    ]


@pytest.mark.once
def test_plain_tensorflow_computes_what_predict_prints(
    page: tuple[Path, list[str]], python: Python, runtimes: list[str]
) -> None:
    folder, (_, _, predicted) = page
    (exported,) = (folder / "runs" / "1" / "export").iterdir()
    source = LOAD
    if len(runtimes) > 1:  # In 1.15 the page's names are those of another API.
        source += blocks("python")[0].replace("120", exported.name)
    done = python(folder, "-c", source, str(exported), "digits.npy")
    assert done.code == 0, done.err
    first, *others = done.out.splitlines()
    rows = [json.loads(line) for line in predicted.splitlines()]
    found = json.loads(first)
    assert found["class"] == [row["class"] for row in rows]
    np.testing.assert_allclose(
        found["probabilities"], [row["probabilities"] for row in rows], rtol=1e-5
    )
    assert others == ["(2,) (2, 10)"] * (len(runtimes) - 1)


@pytest.mark.slow
def test_mlflow_serves_the_model_of_the_page(page: tuple[Path, list[str]], python: Python) -> None:
    folder, (_, _, predicted) = page
    command = blocks("sh")[2]
    done = python(folder, *shlex.split(command)[1:])
    assert (done.code, done.err) == (0, ""), done.out + done.err
    uri = done.out.split()[-1]
    registered = python(folder, *shlex.split(blocks("sh")[3])[1:])
    assert registered.code == 0, registered.out + registered.err
    value = re.compile(r"0\.\d+")
    assert value.sub("V", registered.out).endswith(value.sub("V", blocks("text")[-1]))
    env = {**_environment(folder), "MLFLOW_TRACKING_URI": "sqlite:///mlflow.db"}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    images = json.dumps({"inputs": {"images": np.load(str(folder / "digits.npy")).tolist()}})
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(reserve())
        number = port.address.rpartition(":")[2]
        port.release()
        server = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "models", "serve", "--env-manager=local"]
            + [f"--model-uri={uri}", f"--port={number}", "--host=127.0.0.1"],
            cwd=str(folder),
            env=env,
            start_new_session=True,
        )
        stack.callback(server.wait, 30)
        stack.callback(lambda: os.killpg(server.pid, signal.SIGKILL))
        deadline = time.monotonic() + DEADLINE_SECS
        request = urllib.request.Request(  # noqa: S310 - Loopback.
            f"http://127.0.0.1:{number}/invocations",
            images.encode(),
            {"Content-Type": "application/json"},
        )
        while True:
            try:
                with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310
                    found = json.load(reply)
                break
            except urllib.error.URLError:
                assert server.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.5)
    classes = [json.loads(line)["class"] for line in predicted.splitlines()]
    assert found["predictions"]["class"] == classes
