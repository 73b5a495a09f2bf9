"""Files that somebody else may have written: nothing is unpickled, sent or overwritten by them."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import experiments
from compat.contrib.learn.preprocessing import VocabularyProcessor
from compat.errors import UserError
from compat.scripts.clusters import addresses, inherited
from compat.tracking.console import Console
from compat.tracking.files import write_atomically
from compat.tracking.mlflow import learning_curve
from compat.tracking.mlflow.spool import SPOOL, Spool, reason_refused
from compat.tracking.tensorboard.eventfile import event_files
from compat.tracking.tensorboard.writer import TensorBoard
from experiments.evaluation import best_checkpoint
from experiments.export.loading import load_experiment
from experiments.launching import task_record

DEADLINE_SECS = 240
ROOT = str(Path(experiments.__file__).resolve().parents[1])


class Trap:
    """Fails the test if somebody unpickles it."""

    def __reduce__(self) -> Any:
        return (pytest.fail, ("it was unpickled",))


def test_vocabularies_are_saved_as_json(tmp_path: Path) -> None:
    words = VocabularyProcessor(3, min_frequency=1)
    words.fit(["b a b", "a c"])
    words.save(str(tmp_path / "vocabulary"))
    again = VocabularyProcessor.restore(str(tmp_path / "vocabulary"))
    rows = [[list(row) for row in p.transform(["a b", "c b a b"])] for p in (words, again)]
    assert rows[0] == rows[1] == [[1, 2, 0], [0, 2, 1]]
    assert len(again.vocabulary_) == 3


@pytest.mark.parametrize("content", [pickle.dumps(Trap()), b"", b"[]", b"{}", b"[" * 99_999, b"3"])
def test_vocabularies_of_pickles_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "vocabulary").write_bytes(content)
    with pytest.raises(UserError, match="does not hold a VocabularyProcessor, expected JSON"):
        VocabularyProcessor.restore(str(tmp_path / "vocabulary"))


def test_vocabularies_with_code_are_not_saved(tmp_path: Path) -> None:
    words = VocabularyProcessor(3, tokenizer_fn=lambda texts: (text.split() for text in texts))
    with pytest.raises(UserError, match="with a tokenizer_fn of its own cannot be saved"):
        words.save(str(tmp_path / "vocabulary"))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    """A log folder with files and links, beside a secret."""
    (tmp_path / "secret").write_text("hush")
    folder = tmp_path / "logs"
    (folder / "export" / "deep").mkdir(parents=True)
    (folder / "links").mkdir()
    (folder / "model.ckpt").write_text("weights")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "own").symlink_to("model.ckpt")
    (folder / "links" / "out").symlink_to(tmp_path)
    return folder


@pytest.mark.parametrize("path", ["model.ckpt", "own", "export", "gone", "export/../model.ckpt"])
@pytest.mark.parametrize("folder", ["", "checkpoint", "a/b", "..a/b..", "a."])
def test_files_of_the_log_folder_may_be_sent(logdir: Path, path: str, folder: str) -> None:
    assert reason_refused(str(logdir), str(logdir / path), folder) is None


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "link", "links", "..", "/"])
def test_other_files_are_not_sent(logdir: Path, path: str) -> None:
    reason = reason_refused(str(logdir), os.path.join(str(logdir), path), "checkpoint")
    assert reason is not None
    assert reason.endswith(f"lies outside the log folder {str(logdir)!r}")


@pytest.mark.parametrize("folder", ["..", "../x", "a/../../x", "/etc", "a\\..\\x", "C:\\x", "\0"])
def test_artifacts_go_below_the_run(logdir: Path, folder: str) -> None:
    reason = reason_refused(str(logdir), str(logdir / "model.ckpt"), folder)
    assert reason == f"folder {folder!r} is not below the run's artifacts"


@pytest.mark.once
def test_a_spool_cannot_have_other_files_sent_or_written(logdir: Path, tmp_path: Path) -> None:
    store = {"store": "http://127.0.0.1:9"}  # Not of the form that we write.
    records = [
        {
            "kind": "start",
            "id": "6f",
            "experiment": "../../x",
            "run": "/../../x",
            "time": 1,
            **store,
        },
        {"kind": "tags", "values": {"uri": "http://me:hush@h"}},
        {"kind": "metrics", "step": 1, "time": 1, "values": {"../../../x": 1.0}},
        {"kind": "artifact", "path": str(tmp_path / "secret"), "folder": ""},
        {"kind": "artifact", "path": str(logdir / "link"), "folder": ""},
        {"kind": "artifact", "path": str(logdir / "model.ckpt"), "folder": "../../../../../x"},
        {"kind": "artifact", "path": str(logdir / "model.ckpt"), "folder": "checkpoint"},
        {"kind": "end", "status": "FINISHED", "time": 2},
    ]
    text = "".join(json.dumps(record) + "\n" for record in records)
    (logdir / "tracking.jsonl").write_text(text)
    before = sorted(path.name for path in tmp_path.iterdir())
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MLFLOW")}
    done = subprocess.run(
        [sys.executable, "-m", "compat.tracking.mlflow.sender", str(logdir)],
        cwd=str(tmp_path),
        env={**kept, "PYTHONPATH": ROOT, "MPLBACKEND": "agg"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=DEADLINE_SECS,
    )
    said = done.stdout.decode()
    assert done.returncode == 3, said  # Part of it was refused.
    assert said.count("is given up: ") == 3, said
    made = ["mlflow-artifacts", "mlflow.db"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, *made])
    sent = {p.name for p in (tmp_path / "mlflow-artifacts").rglob("*") if p.is_file()}
    assert "model.ckpt" in sent
    assert not sent & {"secret", "link"}
    assert len(list(tmp_path.rglob("model.ckpt"))) == 2


def test_the_console_keeps_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Console(str(tmp_path)).say("gone: http://me:hush@h:5/x?token=hush --password=hush, at 3")
    shown = "gone: http://***@h:5/x?token=*** --password=***, at 3\n"
    assert capsys.readouterr().out == shown
    assert (tmp_path / "console.log").read_text() == shown


SAY = """
import logging, sys
from compat.tracking.redaction import RedactedStream
sys.stdout, sys.stderr = RedactedStream(sys.stdout), RedactedStream(sys.stderr)
print("http://me:hush@h")
logging.getLogger("mlflow").warning("mysql://me:hush@db")
print(sys.stderr.isatty(), sys.stdout.encoding is not None)
raise ValueError("Could not parse 'mysql://me:hu/sh@db/x'")
"""


def test_output_of_libraries_and_tracebacks_keep_no_secret() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SAY],
        env={**os.environ, "PYTHONPATH": ROOT},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=DEADLINE_SECS,
    )
    said = done.stdout.decode()
    assert done.returncode == 1
    assert said.count("***") == 3 + said.count("raise ValueError")
    assert "hush" not in said
    assert "hu/sh" not in said


@pytest.mark.parametrize("kind", ["link", "foreign"])
def test_the_file_of_ports_is_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path = tmp_path / "ports.json"
    if kind == "link":
        (tmp_path / "other").write_text("{}")
        path.symlink_to(tmp_path / "other")
    elif os.geteuid() == 0:
        path.write_text("{}")
        os.chown(str(path), 12345, 12345)
    else:
        pytest.skip("only root can give a file away")
    monkeypatch.setenv(inherited.PORTS, str(path))
    with pytest.raises(UserError, match="ports.json cannot hold the ports"):
        addresses.mapped("pc-01:2222")


@pytest.fixture
def linked(tmp_path: Path) -> Any:
    """Makes links in a log folder, `tmp_path / "log"`, to files that are not its own."""
    (tmp_path / "log").mkdir()
    (tmp_path / "home").mkdir()

    def link(*names: str) -> Path:
        for name in names:
            (tmp_path / "home" / name).write_text("precious")
            (tmp_path / "log" / name).symlink_to(tmp_path / "home" / name)
        return tmp_path / "log"

    yield link
    texts = {path.name: path.read_text() for path in (tmp_path / "home").iterdir()}
    assert set(texts.values()) == {"precious"}, texts


def test_what_is_replaced_is_not_written_through_links(linked: Any, tmp_path: Path) -> None:
    names = ["settings.yaml", "settings.yaml.tmp", "trimming.tmp", learning_curve.FILE]
    names += ["model.ckpt-1.index", "model.ckpt-1.index.tmp", "checkpoint.tmp"]
    logdir = linked(*names)
    write_atomically(str(logdir / "settings.yaml"), "a: 1\n")
    assert (logdir / "settings.yaml").read_text() == "a: 1\n"
    for step, resumed in ((5, None), (4, 3)):
        board = TensorBoard(str(logdir), resume_step=resumed)
        board.scalars(step, {"cost": 1.0})
        board.close()
    assert len(event_files(str(logdir))) == 2
    (logdir / SPOOL).write_text(
        '{"kind": "metrics", "step": 1, "time": 1, "values": {"cost": 1.0}}\n'
    )
    assert learning_curve.draw(str(logdir)) is not None
    assert (logdir / learning_curve.FILE).read_bytes().startswith(b"\x89PNG")
    for end in ("index", "data-00000-of-00001"):
        (tmp_path / f"model.ckpt-1.{end}").write_text("saved")
    prefix = best_checkpoint.keep(str(tmp_path / "model.ckpt-1"), str(logdir))
    assert Path(prefix + ".index").read_text() == "saved"
    assert not [path.name for path in logdir.iterdir() if path.name.startswith(".")]


def test_what_is_appended_to_is_no_link(linked: Any, capsys: Any) -> None:
    logdir = linked("console.log", task_record.FILE, "tensorboard.lock", SPOOL)
    Console(str(logdir)).say("hello")
    assert capsys.readouterr().out == (
        f"hello\n'{logdir}/console.log' cannot be written to (console.log is a link); the run "
        "continues\n"
    )
    assert not task_record.append(str(logdir), [{"task": "ps 0"}])
    with pytest.raises(UserError, match="written to .tensorboard.lock is a link.; expected a f"):
        TensorBoard(str(logdir))
    with pytest.raises(OSError, match="is a link"):
        Spool(str(logdir))


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A log folder with the program of its run, whose code says so when it runs."""
    text = "from experiments import Experiment\nclass Own(Experiment): pass\nprint('it ran')\n"
    (tmp_path / "own.py").write_text(text)
    origin = {"program": str(tmp_path / "own.py"), "experiment": "Own"}
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "program.json").write_text(json.dumps(origin))
    return tmp_path / "log"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("foreign", [".", "program.json"])
def test_a_program_that_another_user_records_runs_if_it_is_trusted(
    recorded: Path, foreign: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert load_experiment(str(recorded)).__name__ == "Own"
    os.chown(str(recorded / foreign), 12345, 12345)
    capsys.readouterr()
    with pytest.raises(UserError, match="belongs to another user .12345., and the .*add --trust"):
        load_experiment(str(recorded))
    assert capsys.readouterr().out == ""
    assert load_experiment(str(recorded), trust=True).__name__ == "Own"
    own = str(recorded.parent / "own.py")
    assert load_experiment(str(recorded), own).__name__ == "Own"
