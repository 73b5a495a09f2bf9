"""What a training records, read back from the event files and from MLflow's database."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.plugins.custom_scalar.layout_pb2 import Layout
from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from tensorboard.util.tensor_util import make_ndarray

from compat.cluster.ports import reserve
from experiments.mnist import MNIST

pytestmark = pytest.mark.once
WEIGHTS = {"hidden/kernel": 78400, "hidden/bias": 100, "output/kernel": 1000, "output/bias": 10}
TRAINING = ["train/cost", "train/accuracy", "learning_rate", "steps_per_sec"]
VALIDATION = ["validation/cost", "validation/accuracy"]
TEST = ["test/cost", "test/accuracy", "best_test/cost", "best_test/accuracy"]
IMAGES = ["train/input", "weights/first_layer"]
CURVES = [f"pr_curve/{label}" for label in range(10)]
PICTURES = [
    f"{split}/{name}"
    for split in ("validation", "test")
    for name in ("confusion", "confusion/table", "misclassified", *CURVES)
]
HISTOGRAMS = [f"weights/{name}" for name in WEIGHTS]
CHARTS = "custom_scalars__config__"
SETTINGS = [
    CHARTS,
    "model",
    "params",
    "result",
    "_hparams_/session_start_info",
    "_hparams_/session_end_info",
]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def recorded(local: Any, record: Any) -> Any:
    return record(local.logdir)


def steps(recorded: Any, tag: str) -> list[int]:
    return [step for step, _ in recorded.points[tag]]


def curves(recorded: Any) -> dict[str, list[tuple[int, float]]]:
    return {
        tag: [(step, value.simple_value) for step, value in recorded.points[tag]]
        for tag in TRAINING + VALIDATION + TEST
    }


def test_there_is_one_event_file(recorded: Any) -> None:
    assert len(recorded.event_files) == 1


def test_tags(recorded: Any) -> None:
    expected = TRAINING + VALIDATION + TEST + IMAGES + PICTURES + HISTOGRAMS + SETTINGS
    assert sorted(recorded.points) == sorted(expected)


def test_steps_strictly_increase(recorded: Any) -> None:
    for tag in recorded.points:
        found = steps(recorded, tag)
        assert found == sorted(set(found)), tag


def test_steps_are_those_of_the_schedule(recorded: Any) -> None:
    for tag in TRAINING:
        assert len(steps(recorded, tag)) == 12, tag  # Every four updates.
        assert steps(recorded, tag)[-1] == 48
    for tag in VALIDATION + HISTOGRAMS + ["weights/first_layer"]:
        assert steps(recorded, tag) == [12, 24, 36, 48], tag
    for tag in TEST:
        assert steps(recorded, tag) == [48], tag
    for tag in PICTURES:
        assert steps(recorded, tag) == ([48] if "test" in tag else [12, 24, 36, 48]), tag


def test_values(recorded: Any, local: Any) -> None:
    found = curves(recorded)
    for tag, points in found.items():
        for _, value in points:
            assert math.isfinite(value)
            assert value >= 0
            assert value <= 1 or not tag.endswith("accuracy")
    assert {value for _, value in found["learning_rate"]} == {0.5}
    assert f"Final Cost: {found['validation/cost'][-1][1]:.4f} (validation, step 48)" in local.out
    best, last = (found[name][-1][1] for name in ("best_test/accuracy", "test/accuracy"))
    assert re.search(rf"Test-Accuracy: {best:.2f} \(best", local.out)
    assert re.search(rf"{last:.2f} \((?:best and )?last, step 48\)\n", local.out)
    assert found["validation/cost"][-1][1] < found["validation/cost"][0][1]


def test_histograms_are_of_all_weights(recorded: Any) -> None:
    for name, size in WEIGHTS.items():
        for _, value in recorded.points[f"weights/{name}"]:
            buckets = make_ndarray(value.tensor)  # [left, right, count] each.
            assert buckets[:, 2].sum() == size


def test_pages_begin_with_what_is_learned(recorded: Any) -> None:
    """TensorBoard sorts by name; what is before a slash is a group."""
    groups = [
        (name, {tag for tag in recorded.tags if tag.partition("/")[0] == name})
        for name in sorted({tag.partition("/")[0] for tag in recorded.tags if "/" in tag})
        if not name.startswith("_")
    ]
    names = [name for name, _ in groups]
    assert names == ["accuracy", "cost", "test", "train", "validation", "weights"]
    assert dict(groups)["cost"] == {"cost/train", "cost/validation"}
    assert {"weights/first_layer", *HISTOGRAMS} == dict(groups)["weights"]


def test_the_result_is_a_text(recorded: Any, local: Any) -> None:
    ((step, text),) = recorded.points["result"]
    table = text.tensor.string_val[0].decode()
    assert step == 48
    for name in (*TEST, *VALIDATION, "examples_seen"):
        assert f"| {name} | " in table


def test_images(recorded: Any) -> None:
    for tag in IMAGES:
        for _, value in recorded.points[tag]:
            width, height, *images = value.tensor.string_val
            assert (width, height) == (b"28", b"28")
            assert len(images) == 16
            assert all(image.startswith(PNG) for image in images)


def test_graph_is_there_once(recorded: Any) -> None:
    (graph,) = [event.graph_def for event in recorded.events if event.HasField("graph_def")]
    operations = {node.op for node in GraphDef.FromString(graph).node}
    assert {"MatMul", "ResourceApplyGradientDescent"} <= operations


def test_curves_of_training_and_validation_share_a_chart(recorded: Any) -> None:
    ((_, value),) = recorded.points[CHARTS]
    (category,) = Layout.FromString(value.tensor.string_val[0]).category
    charts = {chart.title: list(chart.multiline.tag) for chart in category.chart}
    assert list(charts) == ["accuracy", "cost"]
    for title, patterns in charts.items():
        shown = {tag for tag in recorded.tags for pattern in patterns if re.match(pattern, tag)}
        assert shown == {f"{title}/train", f"{title}/validation"}


def test_settings_are_a_text_and_hyperparameters(recorded: Any, local: Any) -> None:
    ((_, text),) = recorded.points["params"]
    assert "| learning_rate | 0.5 |" in text.tensor.string_val[0].decode()
    ((_, start),) = recorded.points["_hparams_/session_start_info"]
    data = HParamsPluginData.FromString(start.metadata.plugin_data.content)
    settings = data.session_start_info.hparams
    # What was given, of what a run is compared by: columns of constants would hide the metrics.
    assert {"learning_rate", "epochs", "dataset"} <= set(settings)
    assert len(settings) < 7
    # A row for each run, also of those with the same settings.
    assert data.session_start_info.group_name.endswith(f"/{local.logdir.name}")
    assert settings["learning_rate"].number_value == 0.5
    assert settings["dataset"].string_value == "digits"
    ((_, end),) = recorded.points["_hparams_/session_end_info"]
    data = HParamsPluginData.FromString(end.metadata.plugin_data.content)
    assert data.session_end_info.status == api_pb2.STATUS_SUCCESS


def test_run(recorded: Any, local: Any) -> None:
    run_id, status = recorded.run
    assert status == "FINISHED"
    assert (local.logdir / "mlflow_run_id").read_text().split()[0] == run_id
    ((name, start, end),) = recorded.select("select name, start_time, end_time from runs")
    assert name == "local"
    assert start < end <= local.ended * 1000
    ((experiment,),) = recorded.select(
        "select e.name from experiments e join runs r on r.experiment_id = e.experiment_id"
    )
    assert experiment == "mnist"


def test_params_are_all_settings(recorded: Any, local: Any, runtime: str) -> None:
    params = dict(recorded.select("select key, value from params"))
    given: dict[str, Any] = dict(MNIST.presets["2016"], epochs=4, learning_rate=0.5)
    settings = MNIST.Settings(
        runtime=runtime,
        dataset="digits",
        log_every=5,
        summary_every=4,
        checkpoint_every=20,
        logdir=str(local.logdir),
        run_name="local",
        **given,
    ).resolved("mnist")
    assert params == {name: str(value) for name, value in settings.params().items()}


def test_run_has_the_same_curves(recorded: Any) -> None:
    query = "select key, step, value from metrics where key not like 'workload/%' order by step"
    rows = recorded.select(query)
    found: dict[str, list[tuple[int, float]]] = {}
    for key, step, value in rows:
        found.setdefault(key, []).append((step, value))
    expected = curves(recorded)
    assert found.pop("examples_seen") == [(48, 4800)]
    assert set(found) == set(expected)
    for tag, points in expected.items():
        assert [step for step, _ in found[tag]] == [step for step, _ in points]
        values = [value for _, value in points]
        assert [value for _, value in found[tag]] == pytest.approx(values, rel=1e-6)


def test_run_tags(recorded: Any, runtime: str) -> None:
    tags = dict(recorded.select("select key, value from tags"))
    assert tags["runtime"] == runtime
    assert tags["cluster"] == "one process"
    assert re.fullmatch(r"(1\.15|2)\.\d+.*", tags["tensorflow"])
    assert re.fullmatch(r"[0-9a-f]{40}|unknown", tags["git_commit"])
    assert tags["dataset"] == "digits"
    assert tags["dataset_source"] == "embedded in scikit-learn"
    assert re.fullmatch("[0-9a-f]{64}", tags["dataset_checksum"])


def test_the_description_says_what_a_person_asks_first(
    recorded: Any, local: Any, start: Any
) -> None:
    text = dict(recorded.select("select key, value from tags"))["mlflow.note.content"]
    assert text.startswith("**MNIST**: Handwritten digits, or pieces of clothing, in 28 x 28")
    assert "digits; 1,297 of train, 200 of validation, 300 of test examples" in text
    assert re.search(r"\*\*Result\*\*: .*test/accuracy 0\.\d+.*, at step 48", text)
    repeat, export = re.findall(r"```sh\n(.+)\n```", text)
    assert export == f"python -m experiments.export {local.logdir} --mlflow"
    assert {"--learning_rate=0.5", "--epochs=4", "--dataset=digits"} <= set(repeat.split())
    assert repeat.startswith("python -m experiments.mnist ")
    again = start("--print_config", *repeat.split()[3:]).wait()
    kept = [line for line in again.out.splitlines() if not line.startswith("run_name:")]
    written = (local.logdir / "settings.yaml").read_text().splitlines()
    assert kept == [line for line in written if not line.startswith("run_name:")]


def test_the_data_set_is_an_input_of_the_run(recorded: Any) -> None:
    if not recorded.select("select 1 from sqlite_master where name = 'datasets'"):
        assert sys.version_info < (3, 8)  # Whose last MLflow has no data sets.
        return
    ((name, digest, profile),) = recorded.select(
        "select name, digest, dataset_profile from datasets"
    )
    assert name == "digits"
    assert dict(recorded.select("select key, value from tags"))["dataset_checksum"].startswith(
        digest
    )
    assert sum(json.loads(profile).values()) == 1797
    assert recorded.select("select count(*) from inputs") == [(1,)]


def test_run_artifacts(recorded: Any, local: Any) -> None:
    ((uri,),) = recorded.select("select artifact_uri from runs")
    folder = Path(uri[len("file://") :])
    assert folder.is_dir()
    kept = {path.name: path for path in folder.rglob("*") if path.is_file()}
    assert sorted(kept) == [
        "console.log",
        "learning_curve.png",
        "model.ckpt-48.data-00000-of-00001",
        "model.ckpt-48.index",
    ]
    assert {path.parent.name for name, path in kept.items() if "ckpt" in name} == {"checkpoint"}
    assert kept["learning_curve.png"].read_bytes().startswith(PNG)
    assert local.out.startswith(kept["console.log"].read_text())
    for name in ("model.ckpt-48.index", "model.ckpt-48.data-00000-of-00001"):
        assert kept[name].read_bytes() == (local.logdir / name).read_bytes()


def test_without_data_and_network_it_trains_on_digits_and_says_so(start: Any, record: Any) -> None:
    with reserve() as closed:
        offline = dict.fromkeys(("http_proxy", "https_proxy"), f"http://{closed.address}")
        training = start("--max_steps=12", env=offline).wait()
    assert training.code == 0, training.err
    warning = training.out.splitlines()[0]
    assert warning.startswith("WARNING: the data set is scikit-learn's digits (1,797 images), NOT")
    assert "--data_dir" in warning
    # Here the folder, the database and all is made by the training itself.
    assert os.listdir(training.folder / "runs") == [training.logdir.name]
    recorded = record(training.logdir)
    assert recorded.run[1] == "FINISHED"
    assert dict(recorded.select("select key, value from params"))["dataset"] == "digits"
    # Short as it is, it has curves.
    assert recorded.points["train/cost"]
