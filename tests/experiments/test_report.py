"""The report of runs: one HTML file, read back, of log folders that our own writers have made."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.util.tensor_util import make_tensor_proto

from compat.errors import UserError
from compat.tracking import FINISHED, TensorBoard
from compat.tracking.mlflow.spool import Spool
from experiments.launching.task_record import TaskRecord, append
from experiments.report import __main__ as report
from experiments.report import chart, page, run_folder, tasks
from experiments.training.recording import log_folder
from tests.conftest import PACKAGES

pytestmark = pytest.mark.once
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reports.md"
START = 1.7e9


def write_run(folder: Path, rate: str, *, name: str = "<b>net</b>") -> Path:
    """Writes a run of 100 steps, whose worker 1 was killed and started again."""
    folder.mkdir(parents=True)
    (folder / "settings.yaml").write_text(f"learning_rate: {rate}\nsync: false\nmodel: {name}\n")
    board = TensorBoard(str(folder))
    for step in range(10, 101, 10):
        board.scalars(step, {"train/cost": 9 / step, "learning_rate": float(rate)})
    board.scalars(50, {"validation/cost": 0.5, "train/odd": float("nan")})
    board.scalars(100, {"validation/cost": 0.4, "test/cost": 0.45, "best_test/cost": 0.35})
    board.images(100, {"input": np.zeros([2, 28, 28, 1], np.uint8)})
    board.close(FINISHED)
    evaluator = TensorBoard(str(folder / "eval"))
    evaluator.scalars(50, {"validation/cost": 0.3})
    evaluator.close(FINISHED)
    lines = '{"step": 50, "validation/cost": 0.3}\n{"step": 100, "validation/cost": 0.4}\n'
    (folder / "evaluations.jsonl").write_text(lines)
    for prefix in ("model.ckpt-50", "model.ckpt-100", "best/model.ckpt-50"):
        (folder / prefix).parent.mkdir(exist_ok=True)
        (folder / f"{prefix}.index").touch()
    spool = Spool(str(folder))
    spool.append("params", values={"learning_rate": float(rate), "api_token": "abc"})
    spool.append("tags", values={"runtime": "modern"})
    spool.append("end", status=FINISHED, time=1)
    spool.close()
    times = iter([0.0, 0.5, 1.0, 20.0, 21.0, 40.0, 41.0, 42.0, 500.0, 503.0])
    record = TaskRecord(str(folder), clock=lambda: START + next(times))
    for task in ("ps 0", "worker 0", "worker 1"):
        record(task, None)
    record("worker 1", 137)
    record("worker 1", None)
    for task in ("worker 1", "worker 0", "ps 0"):
        record(task, 0)
    made = {"event": "updates", "task": "worker 1", "count": 60, "staleness": 0.75}
    append(str(folder), [dict(made, time=START + 41.5)])
    record("worker 0", None)  # The run is complete, and started again.
    record("worker 0", 0)
    return folder


class Reader(HTMLParser):
    """Collects the tags of a page with their attributes, the text, and what is left open."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, Any]]] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    return reader


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    return [
        str(write_run(tmp_path / "runs" / name, rate))
        for name, rate in [("a", "0.1"), ("b", "0.2")]
    ]


def rows(text: str) -> list[list[str]]:
    """Returns the cells of each row of each table."""
    return [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in re.findall("<tr.*?</tr>", text)]


def test_page_needs_no_network(runs: list[str]) -> None:
    reader = read(page.page([run_folder.read(run) for run in runs]))
    for tag, attributes in reader.tags:
        assert tag not in ("script", "link", "iframe")
        assert attributes.get("src", "data:").startswith("data:")
        assert "href" not in attributes
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in [
        (tag, attributes) for tag, attributes in reader.tags
    ]


def test_texts_are_escaped(runs: list[str]) -> None:
    text = page.page([run_folder.read(run) for run in runs])
    assert "<b>" not in text
    assert "<b>net</b>" in read(text).text
    text.encode("ascii")


def test_secrets_are_hidden(runs: list[str]) -> None:
    assert ["api_token", "***"] in rows(page.page([run_folder.read(runs[0])]))


def test_differences_come_first(runs: list[str]) -> None:
    text = page.page([run_folder.read(run) for run in runs])
    settings = rows(text[: text.index("<h2>Results")])
    assert settings[:2] == [["setting", *runs], ["learning_rate", "0.1", "0.2"]]
    assert settings[2] == ["setting", "all runs"]
    assert ["sync", "false"] in settings
    assert ["runtime", "modern"] in settings
    assert text.count('<tr class="differs"><th>learning_rate') == 1


def test_results_are_of_the_last_and_the_best_checkpoint(runs: list[str]) -> None:
    found = rows(page.page([run_folder.read(runs[0])]))
    assert ["value", "last", "best"] in found
    assert ["step", "100", "50"] in found
    assert ["test/cost", "0.45", "0.35"] in found
    assert ["validation/cost", "0.4", "0.3"] in found


def test_curves_of_one_value_share_a_chart(runs: list[str]) -> None:
    text = page.page([run_folder.read(run) for run in runs])
    charts = dict(re.findall(r"<figcaption>([^<]+)</figcaption>(<svg.*?</svg>)", text))
    assert list(charts) == ["cost", "learning_rate"]
    drawn = ElementTree.fromstring(charts["cost"])
    kinds = sorted(line.attrib["class"] for line in drawn.iter("polyline"))
    assert kinds == ["c0 train", "c0 validation", "c1 train", "c1 validation"]
    titles = [title.text for title in drawn.iter("title")]
    assert f"{runs[0]} test/cost: 0.45 at step 100" in titles
    assert f"{runs[0]} evaluator/cost: 0.3 at step 50" in titles
    assert "odd: no finite value" in text


def test_tasks_are_a_row_each(runs: list[str]) -> None:
    text = page.page([run_folder.read(runs[0])])
    found = rows(text[text.index("<h2>Tasks") :])
    assert found == [
        ["task", "up", "restarts", "ends", "updates", "staleness"],
        ["worker 0", "40.5 s", "0", "finished", "", ""],
        ["worker 1", "38.0 s", "1", "killed by signal 9, finished", "60", "0.75"],
        ["ps 0", "42.0 s", "0", "finished", "", ""],
        ["task", "up", "restarts", "ends"],  # Of the second launch.
        ["worker 0", "3.0 s", "0", "finished"],
    ]
    drawn = ElementTree.fromstring(re.findall("<svg.*?</svg>", text[text.index("<h2>Tasks") :])[0])
    bars = [bar.attrib["class"] for bar in drawn.iter("rect")]
    assert sorted(bars) == ["bad", "good", "good", "good"]


def test_a_chief_alone_is_told_by_its_event_files() -> None:
    found = tasks.lives_of([], [(0.0, 5.0), (7.0, 9.0)], 0)
    assert [(life.task, life.end, life.outcome) for life in found] == [
        ("chief", 5.0, "no end recorded"),
        ("chief", 9.0, "finished"),
    ]


def test_samples_are_in_the_page(runs: list[str]) -> None:
    tags = read(page.page([run_folder.read(runs[0])])).tags
    images = [attributes for tag, attributes in tags if tag == "img"]
    assert [image["alt"] for image in images] == ["input 0", "input 1"]


def test_what_was_cut_off_is_not_drawn(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", "0.1")
    with open(log_folder.event_files(str(folder))[0], "r+b") as file:
        file.truncate(400)
    broken = [
        '{"time": "x"}',
        "[]",
        '{"time": 1e300, "task": "ps 0", "event": "start"}',
        "9" * 5000,
    ]
    broken += ['{"time": 1, "task": "ps 0", "event": "updates", "count": {}}', '{"time": 1, "task"']
    (folder / "tasks.jsonl").write_text("\n".join(broken))
    run = run_folder.read(str(folder))
    assert 0 < len(run.curves["train/cost"]) < 10
    page.page([run])


def test_what_another_program_has_written_is_passed_over(tmp_path: Path) -> None:
    board = TensorBoard(str(tmp_path))
    for step, content in enumerate([[], [b"x", b"y"], [b"x", b"1", b"\x89PNG\r\n\x1a\n"]]):
        for plugin in ("images", "scalars"):
            value = Summary.Value(
                tag=f"{plugin}/a", tensor=make_tensor_proto(content, dtype=DT_STRING)
            )
            value.metadata.plugin_data.plugin_name = plugin
            board.summary(step, Summary(value=[value]).SerializeToString())
    board.scalars(1, {"train/loss": 1e38})
    board.close()
    run = run_folder.read(str(tmp_path))
    assert list(run.curves) == ["train/loss"]
    assert run.images["images/a"].width == 0
    page.page([run])


def test_long_curves_keep_their_peaks() -> None:
    points = [(step, 100.0 if step == 7777 else step % 7) for step in range(20000)]
    drawn = chart.thinned(points)
    assert len(drawn) < 500
    assert (7777, 100.0) in drawn
    assert drawn == sorted(drawn)


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    with pytest.raises(UserError, match="runs is not a folder; give the --logdir of a run, as in "):
        run_folder.read(str(folder))
    folder.mkdir()
    with pytest.raises(UserError, match="runs holds no run; give the --logdir of one, as in "):
        run_folder.read(str(folder))
    write_run(folder / "a", "0.1")
    with pytest.raises(UserError, match="runs holds no run; give .*, such as .*/runs/a$"):
        run_folder.read(str(folder))


def test_a_file_that_cannot_be_written(runs: list[str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written .*; name another file"):
        report.main([runs[0], f"--output={tmp_path}"])
    assert [path.name for path in tmp_path.parent.glob("*.tmp")] == []


def test_command_of_the_docs(tmp_path: Path) -> None:
    for name, rate in (("low-rate", "0.001"), ("high-rate", "0.1")):
        write_run(tmp_path / "runs" / name, rate)
    text = PAGE.read_text(encoding="utf-8")
    (command,) = re.findall(r"```sh\n(.+)\n```", text)
    (expected,) = re.findall(r"```text\n(.+)\n```", text)
    words = shlex.split(command)
    done = subprocess.run(
        [sys.executable, *words[1:]],
        cwd=tmp_path,
        env=dict(os.environ, PYTHONPATH=PACKAGES),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, expected + "\n", "")
    assert (tmp_path / expected.partition(":")[0]).read_text().startswith("<!DOCTYPE html>")
