"""What a real TensorBoard shows of a run that was cut off and resumed, by each of its loaders."""

from __future__ import annotations

import io
import json
import urllib.parse
import urllib.request
from typing import Iterator

import numpy as np
import pytest
from PIL import Image
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef

from compat.tracking import TensorBoard
from tests.compat.tracking.conftest import LOADERS, tensorboard

pytestmark = pytest.mark.once


def write_run(logdir: str) -> None:
    """Has a run reach step 50, and be resumed from step 30."""
    writer = TensorBoard(logdir)
    writer.params({"learning_rate": 0.1})
    node = NodeDef(name="train_step", op="NoOp")
    writer.graph(GraphDef(node=[node]).SerializeToString())
    for step in range(10, 51, 10):
        writer.scalars(step, {"train/cost": step, "validation/accuracy": 0.25})
    writer.close("KILLED")
    writer = TensorBoard(logdir, resume_step=30)
    writer.params({"learning_rate": 0.2})
    for step in range(40, 61, 10):
        writer.scalars(step, {"train/cost": -step, "validation/accuracy": 0.5})
    writer.histograms(60, {"weights": np.arange(9.0)})
    writer.images(60, {"digits": np.zeros([2, 28, 28, 1], np.uint8)})
    writer.close()


@pytest.fixture(scope="module", params=LOADERS)
def address(request, tmp_path_factory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("logs")
    write_run(str(folder / "run"))
    with tensorboard(folder, request.param) as served:
        yield served


def get(address, path, **query):
    url = f"{address}/data/{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=100) as answer:
        return json.load(answer)


def post(address, path, body):
    request = urllib.request.Request(
        f"{address}/data/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=100) as answer:
        return json.load(answer)


def test_the_run_shows(address, wait_for):
    wait_for(lambda: get(address, "runs") == ["run"], "run")
    wait_for(
        lambda: len(get(address, "plugin/scalars/tags").get("run", {})) == 2, "two scalar tags"
    )
    expected = [(10, 10), (20, 20), (30, 30), (40, -40), (50, -50), (60, -60)]

    def shown():
        points = get(address, "plugin/scalars/scalars", run="run", tag="train/cost")
        return [(step, value) for _, step, value in points]

    # A loader shows what it has read so far, such as the first of the two files.
    wait_for(lambda: shown() == expected, f"points but {shown()}")


def test_histograms_and_images_show(address, wait_for):
    tags = lambda plugin: get(address, f"plugin/{plugin}/tags").get("run", {})  # noqa: E731
    wait_for(lambda: "weights" in tags("histograms"), "histogram")
    ((_, step, buckets),) = get(address, "plugin/histograms/histograms", run="run", tag="weights")
    assert step == 60 and sum(count for _, _, count in buckets) == 9
    wait_for(lambda: "digits" in tags("images"), "image")
    images = get(address, "plugin/images/images", run="run", tag="digits", sample=1)
    assert [image["step"] for image in images] == [60]
    url = f"{address}/data/plugin/images/individualImage?{images[0]['query']}"
    with urllib.request.urlopen(url, timeout=100) as answer:
        assert Image.open(io.BytesIO(answer.read())).size == (28, 28)


def test_the_graph_shows(address, wait_for):
    wait_for(lambda: "run" in get(address, "plugin/graphs/info"), "graph")
    url = f"{address}/data/plugin/graphs/graph?run=run"
    with urllib.request.urlopen(url, timeout=100) as answer:
        assert b"train_step" in answer.read()


def test_the_settings_show_with_the_metrics_and_the_end(address, wait_for):
    def session_groups():
        experiment = post(address, "plugin/hparams/experiment", {"experimentName": ""})
        names = [{"name": info["name"]} for info in experiment["metricInfos"]]
        body = {
            "experimentName": "",
            "allowedStatuses": ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE",
                                "STATUS_RUNNING"],
            "colParams": [{"metric": name["name"]} for name in names] + [
                {"hparam": info["name"]} for info in experiment["hparamInfos"]],
            "startIndex": 0,
            "sliceSize": 10,
        }  # fmt: skip
        return post(address, "plugin/hparams/session_groups", body).get("sessionGroups", [])

    wait_for(lambda: session_groups(), "session group")
    # A loader shows what it has read so far, such as the first of the two files.
    ended = {"status": "STATUS_SUCCESS"}.items()
    wait_for(lambda: ended <= session_groups()[0]["sessions"][0].items(), "the end")
    wait_for(lambda: session_groups()[0].get("metricValues"), "metric values")
    (group,) = session_groups()
    assert group["hparams"] == {"learning_rate": 0.2}
    (session,) = group["sessions"]
    assert session["status"] == "STATUS_SUCCESS"
    values = {v["name"]["tag"]: (v["trainingStep"], v["value"]) for v in group["metricValues"]}
    assert values["validation/accuracy"] == (60, 0.5)
