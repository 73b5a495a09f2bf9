"""Converts a trained graph and its optimizer without their program; prints what came of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from compat import tf1
from compat.checkpoint import files

if TYPE_CHECKING:
    from tests.compat.programs.cases import case
    from tests.compat.programs.converting import convert, written
else:
    from cases import case
    from converting import convert, written

X = np.random.RandomState(1).uniform(-1, 1, [5, 3]).astype(np.float32)
FEED = {"input/x:0": X, "label:0": np.arange(5) % 4, "keep_prob:0": 1.0}
SHAPES = {"first/kernel": (3, 2), "first/bias": (2,), "second/kernel": (2, 2), "second/bias": (2,)}
WORDS = ["zero", "one", "two", "three"]


def trained(folder: Path) -> dict[str, Any]:
    """Writes `old/model.ckpt-2` with its graph, and `frozen.pb`; returns what it computes."""
    folder.mkdir()
    os.chdir(str(folder))
    with tf1.Graph().as_default() as graph:
        x = tf1.placeholder(tf1.float32, [None, 3], name="input/x")
        label = tf1.placeholder(tf1.int64, [None], name="label")
        keep = tf1.placeholder(tf1.float32, [], name="keep_prob")
        with tf1.variable_scope("net", partitioner=tf1.fixed_size_partitioner(2)):
            weights = tf1.get_variable("w", [3, 4])
        bias = tf1.get_variable("b", [4])
        dropped = tf1.nn.dropout(x, keep_prob=keep)
        logits = tf1.add(tf1.matmul(dropped, weights), bias, name="logits")
        losses = tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits)
        loss = tf1.reduce_mean(losses, name="loss")
        tf1.summary.scalar("the_loss", loss)
        keys = tf1.range(4, dtype=tf1.int64)
        pairs = tf1.lookup.KeyValueTensorInitializer(keys, tf1.constant(WORDS))
        table = tf1.lookup.StaticHashTable(pairs, "none")
        word = tf1.identity(table.lookup(tf1.argmax(logits, 1)), name="word")
        step = tf1.train.get_or_create_global_step()
        train = tf1.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
        with tf1.Session() as session:
            session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
            for _ in range(2):
                session.run(train, FEED)
            tf1.train.Saver().save(session, "old/model.ckpt", global_step=step)
            right = session.run({"logits": logits, "word": word}, FEED)
            freeze = tf1.graph_util.convert_variables_to_constants
            frozen = freeze(session, graph.as_graph_def(), ["logits"])
    for node in frozen.node:
        node.device = "/job:worker/task:7"  # A machine of the time.
    Path("frozen.pb").write_bytes(frozen.SerializeToString())
    return right


def served(folder: str, feed: dict[str, Any]) -> dict[str, Any]:
    """Returns what the model in a folder computes, as a server of models does."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        model = tf1.saved_model.load(session, ["serve"], folder)
        signature = model.signature_def["serving_default"]
        feeds = {signature.inputs[key].name: value for key, value in feed.items()}
        return session.run({k: info.name for k, info in signature.outputs.items()}, feeds)


@case
def saves_models(folder: Path) -> Any:
    right = trained(folder)
    alone = ["--outputs=logits", "--value=keep_prob=1"]
    frozen = convert("frozen.pb", "from_frozen", *alone)
    meta = "old/model.ckpt-2.meta"
    both = convert(meta, "from_meta", "--outputs=word,scores=logits:0", alone[1], "--report=r.json")
    found = convert(meta)
    outputs = [served(name, {"input_x": X}) for name in ("from_frozen", "from_meta")]
    equal = [np.array_equal(outputs[0]["logits"], right["logits"])]
    equal += [np.array_equal(outputs[1]["scores"], right["logits"])]
    equal += [outputs[1]["word"].tolist() == right["word"].tolist()]
    report = json.loads(Path("r.json").read_text(encoding="utf-8"))
    return [frozen, both, found, equal, report, sorted(os.listdir("from_meta"))]


@case
def refuses_graphs(folder: Path) -> Any:
    trained(folder)
    Path("text.pb").write_text("no graph", encoding="utf-8")
    with tf1.Graph().as_default() as graph:
        tf1.get_variable("w", [1])
        Path("warm.pb").write_bytes(graph.as_graph_def().SerializeToString())
    meta, lone = Path("old/model.ckpt-2.meta"), Path("lone.meta")
    lone.write_bytes(meta.read_bytes())
    gone = meta.read_bytes().replace(b"MatMul", b"MatMuX")
    Path("old/gone.meta").write_bytes(gone)
    before = sorted(os.listdir("."))
    frozen = ["frozen.pb", "new"]
    wrong = {
        "no_graph": ["text.pb", "new"],
        "not_frozen": ["warm.pb", "new"],
        "no_output": [*frozen, "--outputs=probs"],
        "key_twice": [*frozen, "--outputs=logits,logits:0"],
        "open_input": [*frozen, "--outputs=logits", "--inputs=input/x"],
        "no_placeholder": [*frozen, "--value=logits=1"],
        "no_value": [*frozen, "--value=keep_prob=all"],
        "no_checkpoint": ["lone.meta", "new", "--outputs=logits"],
        "no_operation": ["old/gone.meta", "new", "--outputs=logits"],
        "of_checkpoints": [*frozen, "--like=old"],
        "of_graphs": ["old", "--outputs=logits"],
        "no_report": ["frozen.pb", "--report=nowhere/r.json"],
    }
    said = {name: convert(*argv)[::2] for name, argv in wrong.items()}
    return [said, sorted(os.listdir(".")) == before]


@case
def slots_follow_renames(folder: Path) -> Any:
    """The names of the old program end up in a scope of the new one."""
    trained(folder)
    old = files.read("old/model.ckpt-2")
    zeros = {f"tower/{name}": value * 0 for name, value in old.items() if name != "global_step"}
    for name in ("Adam", "Adam_1"):  # As in a scope of the optimizer.
        zeros[f"train/tower/b/{name}"] = zeros.pop(f"tower/b/{name}")
    Path("like").mkdir()
    written("like/logs", **zeros, global_step=np.int64(0))
    pairs = ["--rename=*w:tower/*w", "--rename=b:tower/b", "--report=r.json"]
    report = convert("old", "new", "--like=like/logs", *pairs)
    new = files.read("new/model.ckpt-2")
    new.update({name.replace("train/", ""): value for name, value in new.items()})
    equal = [np.array_equal(new[f"tower/{n}"], v) for n, v in old.items() if n != "global_step"]
    return [*report, all(equal), len(equal), json.loads(Path("r.json").read_text("utf-8"))]


@case
def keras_weights(folder: Path) -> Any:
    """To a file that `model.save_weights` of Keras 3 would write, and back."""
    folder.mkdir()
    os.chdir(str(folder))
    values = {f"net/{name}": np.float32(np.random.rand(*s)) for name, s in SHAPES.items()}
    for name in list(values):
        values.update({f"{name}/Adam": values[name] + 1, f"{name}/Adam_1": values[name] + 2})
    count = {"beta1_power": np.float32(0.9**4), "beta2_power": np.float32(0.999**4)}
    written("old", **values, **count)
    slots = [array for shape in SHAPES.values() for array in [np.zeros(shape, np.float32)] * 2]
    layers = [np.zeros(shape, np.float32) for shape in SHAPES.values()]
    with h5py.File("like.weights.h5", "w") as file:
        for group, name, arrays in (
            ("layers/dense", "first", layers[:2]),
            ("layers/dense_1", "second", layers[2:]),
            ("optimizer", "adam", [np.int64(7), np.float32(0.01), *slots]),
        ):
            file.create_group(f"{group}/vars").attrs["name"] = name
            for number, array in enumerate(arrays):
                file[f"{group}/vars/{number}"] = array
    like = ["--like=like.weights.h5", "--rename=net/*:*"]
    wrong = [
        convert("old", "new.weights.h5", like[0], "--betas=0.8,0.999", like[1])[::2],
        convert("old", "new", *like)[::2],
        convert("like.meta.weights.h5")[::2],
        convert("old", "new.weights.h5", *like, "--betas=1")[::2],
        convert("old", "new.weights.h5", like[0], "--rename=net*:first")[::2],
        convert("old", "new.weights.h5", like[0], "--rename=ten/*:*")[::2],
    ]
    there = convert("old", "new.weights.h5", *like)
    back = convert("new.weights.h5", "back", "--like=old", "--rename=*/*:net/*/*")
    new, old = files.read("back/model.ckpt"), {**values, **count}
    equal = [bool(np.allclose(new[name], value, rtol=1e-6)) for name, value in old.items()]
    with h5py.File("new.weights.h5", "r") as file:
        numbers = [file[f"optimizer/vars/{n}"][()].item() for n in range(2)]
    return [there, back, equal, numbers, wrong, sorted(os.listdir("."))]
