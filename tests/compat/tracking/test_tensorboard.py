from __future__ import annotations

import io
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.util import tensor_util

from compat.errors import UserError
from compat.tracking import TensorBoard
from compat.tracking.tensorboard.eventfile import event_files, read_events


def events(logdir):
    return [event for path in event_files(logdir) for _, event in read_events(path)]


def steps(logdir, tag):
    return [e.step for e in events(logdir) if any(v.tag == tag for v in e.summary.value)]


def loaded(logdir):
    accumulator = EventAccumulator(logdir, size_guidance={"scalars": 0, "tensors": 0})
    return accumulator.Reload()


def scalars(logdir, tag):
    return [(s.step, pytest.approx(s.value)) for s in loaded(logdir).Scalars(tag)]


def test_scalars_are_read_by_tensorboard(logdir):
    writer = TensorBoard(logdir)
    for step in (100, 200, 300):
        writer.scalars(step, {"train/cost": 1.0 / step, "train/accuracy": 0.5})
    writer.scalars(400, {"train/cost": float("nan"), "train/accuracy": 1e300})
    writer.close()
    assert scalars(logdir, "train/cost")[:3] == [(s, 1.0 / s) for s in (100, 200, 300)]
    assert np.isnan(loaded(logdir).Scalars("train/cost")[3].value)


def test_a_scalar_is_there_as_soon_as_it_is_written(logdir):
    writer = TensorBoard(logdir)
    writer.scalars(1, {"a": 1.0})
    assert scalars(logdir, "a") == [(1, 1.0)]
    writer.close()


@pytest.mark.parametrize("step", [5, 4])
def test_steps_of_a_name_must_increase(logdir, step):
    writer = TensorBoard(logdir)
    writer.scalars(5, {"a": 1.0})
    writer.scalars(step, {"b": 1.0})
    with pytest.raises(ValueError, match=f"step {step} of 'a' comes after its step 5; the steps"):
        writer.scalars(step, {"a": 1.0})
    writer.close()


def test_histograms_hold_every_finite_value(logdir):
    writer = TensorBoard(logdir)
    values = np.array([[0.0, 1.0, 2.0], [3.0, np.nan, -np.inf]], np.float32)
    writer.histograms(1, {"weights": values, "none": np.zeros([0]), "same": np.ones([7])})
    writer.close()
    tensors = loaded(logdir)
    buckets = tensor_util.make_ndarray(tensors.Tensors("weights")[0].tensor_proto)
    assert buckets[:, 2].sum() == 4 and buckets[0, 0] == 0.0 and buckets[-1, 1] == 3.0
    same = tensor_util.make_ndarray(tensors.Tensors("same")[0].tensor_proto)
    assert same[:, 2].sum() == 7


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_come_back_as_they_were(logdir, channels):
    images = np.random.RandomState(0).randint(0, 256, [2, 5, 7, channels]).astype(np.uint8)
    writer = TensorBoard(logdir)
    writer.images(3, {"digits": images})
    writer.close()
    (event,) = loaded(logdir).Tensors("digits")
    width, height, *pngs = tensor_util.make_ndarray(event.tensor_proto)
    assert (event.step, width, height, len(pngs)) == (3, b"7", b"5", 2)
    for png, image in zip(pngs, images):
        assert np.array_equal(np.array(Image.open(io.BytesIO(png))).reshape(5, 7, channels), image)


@pytest.mark.parametrize(
    "images", [np.zeros([2, 5, 7], np.uint8), np.zeros([2, 5, 7, 2], np.uint8), np.zeros([1] * 4)]
)
def test_other_images_are_refused(logdir, images):
    writer = TensorBoard(logdir)
    with pytest.raises(ValueError, match=r"images 'x' are .*; expected uint8 \[k, h, w, c\]"):
        writer.images(1, {"x": images})
    writer.close()


def test_texts_figures_and_summaries_of_ones_own(logdir):
    figure = Figure(figsize=(2, 1), dpi=50)
    figure.add_subplot(1, 1, 1).plot([1, 2])
    writer = TensorBoard(logdir)
    for step in (1, 2):
        writer.texts(step, {"sample": f"**{step}**"})
        writer.figures(step, {"curve": figure})
        own = Summary(value=[Summary.Value(tag="own", simple_value=step)])
        writer.summary(step, own.SerializeToString())
    with pytest.raises(ValueError, match="the steps of a name must strictly increase"):
        writer.texts(2, {"sample": ""})
    with pytest.raises(ValueError, match="the steps of a name must strictly increase"):
        writer.summary(2, own.SerializeToString())
    writer.close()
    accumulator = loaded(logdir)
    texts = [tensor_util.make_ndarray(e.tensor_proto).item() for e in accumulator.Tensors("sample")]
    assert texts == [b"**1**", b"**2**"]
    width, height, png = tensor_util.make_ndarray(accumulator.Tensors("curve")[1].tensor_proto)
    assert (width, height) == (b"100", b"50")
    shades = np.array(Image.open(io.BytesIO(png)).convert("L"))
    assert shades.shape == (50, 100) and shades.min() < 100 < shades.max()
    assert [(e.step, e.value) for e in accumulator.Scalars("own")] == [(1, 1.0), (2, 2.0)]


def test_the_graph_is_written_once_a_folder(logdir):
    for resume_step in (None, 0, 0):
        writer = TensorBoard(logdir, resume_step=resume_step)
        writer.graph(b"\n\x03\n\x01x")
        writer.graph(b"\n\x03\n\x01x")
        writer.close()
    assert sum(event.HasField("graph_def") for event in events(logdir)) == 1
    assert loaded(logdir).Tags()["graph"] is True


def test_params_are_a_table_and_hparams_without_secrets(logdir):
    writer = TensorBoard(logdir)
    writer.params({"batch_size": 100, "sync": True, "optimizer": "a|b", "api_token": "hush"})
    writer.scalars(1, {"validation/accuracy": 0.5})
    writer.close("FAILED")
    accumulator = loaded(logdir)
    text = tensor_util.make_ndarray(accumulator.Tensors("params")[0].tensor_proto).item().decode()
    assert "| batch_size | 100 |" in text and r"| optimizer | a\|b |" in text
    content = accumulator.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    hparams = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info.hparams
    assert hparams["batch_size"].number_value == 100
    assert hparams["sync"].bool_value is True
    assert hparams["api_token"].string_value == "***"
    content = accumulator.SummaryMetadata("_hparams_/session_end_info").plugin_data.content
    end = plugin_data_pb2.HParamsPluginData.FromString(content).session_end_info
    assert plugin_data_pb2.HParamsPluginData.FromString(content).HasField("session_end_info")
    assert end.status == 2  # STATUS_FAILURE
    for path in event_files(logdir):
        assert b"hush" not in pathlib.Path(path).read_bytes()


def cut_off(logdir, python):
    """Has a training write steps 10 to 100, and kills it."""
    source = (
        "import sys, time\n"
        "from compat.tracking import TensorBoard\n"
        "writer = TensorBoard(sys.argv[1])\n"
        "writer.params({'learning_rate': 0.1})\n"
        "writer.graph(b'')\n"
        "for step in range(10, 101, 10): writer.scalars(step, {'cost': step})\n"
        "print('written', flush=True)\n"
        "time.sleep(60)\n"
    )
    process = python(source, logdir)
    assert process.stdout.readline().strip() == b"written"
    return process


def test_a_resumed_training_goes_on_where_the_checkpoint_is(logdir, python):
    process = cut_off(logdir, python)
    process.kill()
    process.wait(60)
    (path,) = event_files(logdir)
    os.truncate(path, os.path.getsize(path) - 5)  # as if the last record had not got through
    for resume_step, last in ((50, 80), (70, 90)):
        writer = TensorBoard(logdir, resume_step=resume_step)
        writer.params({"learning_rate": 0.2})
        for step in range(resume_step + 10, last + 1, 10):
            writer.scalars(step, {"cost": -step})
        writer.close("FAILED" if last == 80 else "FINISHED")
    assert steps(logdir, "cost") == [10, 20, 30, 40, 50, 60, 70, 80, 90]
    expected = [(s, s if s <= 50 else -s) for s in range(10, 91, 10)]
    assert scalars(logdir, "cost") == expected
    assert steps(logdir, "params") == [0]
    assert steps(logdir, "_hparams_/session_start_info") == [0]
    assert steps(logdir, "_hparams_/session_end_info") == [0]
    content = loaded(logdir).SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    start = plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info
    assert start.hparams["learning_rate"].number_value == 0.2
    assert not [name for name in os.listdir(logdir) if name.endswith(".tmp")]


def test_settings_stay_when_a_resumed_training_gives_none(logdir):
    TensorBoard(logdir).close()
    writer = TensorBoard(logdir, resume_step=0)
    writer.params({"learning_rate": 0.1})
    writer.close()
    TensorBoard(logdir, resume_step=0).close()
    assert steps(logdir, "_hparams_/session_start_info") == [0]
    assert steps(logdir, "_hparams_/session_end_info") == [0]


def test_after_a_resume_too_steps_must_increase(logdir):
    writer = TensorBoard(logdir)
    writer.scalars(5, {"a": 1.0})
    writer.close()
    writer = TensorBoard(logdir, resume_step=7)
    with pytest.raises(ValueError, match="step 5 of 'a' comes after its step 5"):
        writer.scalars(5, {"a": 1.0})
    writer.close()


def test_a_new_run_is_refused_where_there_is_another(logdir):
    writer = TensorBoard(logdir)
    writer.scalars(5, {"a": 1.0})
    writer.close()
    with pytest.raises(UserError, match="holds events up to step 5 of another run; expected an e"):
        TensorBoard(logdir)
    TensorBoard(logdir, resume_step=0).close()
    assert steps(logdir, "a") == []


def test_a_second_writer_is_refused_until_the_first_is_dead(logdir, python):
    process = cut_off(logdir, python)
    with pytest.raises(UserError, match="is being written by another process; expected one Tens"):
        TensorBoard(logdir, resume_step=0)
    assert len(steps(logdir, "cost")) == 10
    process.kill()
    process.wait(60)
    TensorBoard(logdir, resume_step=0).close()


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written to .*; give another one"):
        TensorBoard(str(tmp_path / "file" / "run"))


def test_a_removed_folder_is_told_once_and_the_training_goes_on(logdir, said):
    writer = TensorBoard(logdir, say=said.append)
    writer.params({"a": 1})
    writer.scalars(1, {"a": 1.0})
    shutil.rmtree(logdir)
    writer.scalars(2, {"a": 1.0})
    writer.scalars(3, {"a": 1.0})
    writer.graph(b"")
    writer.close()
    assert len(said) == 1
    assert "no more events are written" in said[0] and "the run continues" in said[0]
    assert not os.path.exists(logdir)


def test_a_full_disk_is_told_once_and_what_was_written_stays(logdir, python):
    source = (
        "import resource, sys\n"
        "from compat.tracking import TensorBoard\n"
        "writer = TensorBoard(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "for step in range(1, 300): writer.scalars(step, {'cost': 1.0})\n"
        "writer.close()\n"
    )
    out, _ = python(source, logdir).communicate(timeout=150)
    assert out.decode().count("no more events are written") == 1, out
    assert len(out.splitlines()) == 1
    written = steps(logdir, "cost")
    assert written == list(range(1, len(written) + 1)) and len(written) > 20
    writer = TensorBoard(logdir, resume_step=written[-1])
    writer.scalars(written[-1] + 1, {"cost": 2.0})
    writer.close()
    assert scalars(logdir, "cost") == [(s, 1.0) for s in written] + [(written[-1] + 1, 2.0)]


def test_tensorflow_is_not_imported(logdir):
    source = (
        "import sys\n"
        "import numpy as np\n"
        "from compat.tracking import TensorBoard\n"
        "for resume_step in (None, 0):\n"
        "  writer = TensorBoard(sys.argv[1], resume_step)\n"
        "  writer.params({'a': 1, 'b': 'c'})\n"
        "  writer.graph(b'')\n"
        "  writer.scalars(1, {'a': 1.0})\n"
        "  writer.histograms(1, {'h': np.arange(9.0)})\n"
        "  writer.images(1, {'i': np.zeros([1, 2, 2, 3], np.uint8)})\n"
        "  writer.close()\n"
        "assert 'tensorboard' in sys.modules\n"
        "print('tensorflow' in sys.modules)\n"
    )
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    out = subprocess.check_output(
        [sys.executable, "-c", source, logdir], env=env, timeout=150, stderr=subprocess.STDOUT
    )
    assert out.decode().split() == ["False"]
