"""One program of estimators, and what each of its names has given.

`api` has the names, be it `tf.estimator` or `compat.estimator`. This module imports nothing of
ours, so that TensorFlow 1.15 alone can tell what the numbers have to be:

    python estimator_rows.py > golden_estimators.json
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

X = np.array([1, 2, 3, 4], np.float32)
Y = 2 * X
SECTIONS = {
    "Estimators": [
        "tf.estimator.Estimator.train",
        "tf.estimator.Estimator.evaluate",
        "tf.estimator.Estimator.predict",
        "tf.estimator.Estimator.get_variable_value",
        "tf.estimator.Estimator.export_saved_model",
        "tf.estimator.Estimator.latest_checkpoint",
        "tf.estimator.EstimatorSpec",
        "tf.estimator.RunConfig",
        "tf.estimator.train_and_evaluate",
        "tf.estimator.FinalExporter",
        "tf.estimator.LatestExporter",
        "tf.estimator.BestExporter",
        "tf.estimator.inputs.numpy_input_fn",
        "tf.estimator.inputs.pandas_input_fn",
    ],
}


def model_fn_of(api: Any, tf1: Any, logged: list[float]) -> Any:
    """Returns a model function of 2018: each step adds to "dense/kernel" the mean of the inputs."""

    def model_fn(features: Any, labels: Any, mode: Any, params: Any) -> Any:
        keys, zeros = api.ModeKeys, tf1.zeros_initializer()
        x = tf1.reshape(features["x"], [-1, 1])
        outputs = tf1.layers.dense(x, 1, use_bias=False, kernel_initializer=zeros, name="dense")
        predictions = {"y": tf1.reshape(outputs, [-1])}
        if mode == keys.PREDICT:
            served = {"served": api.export.PredictOutput(predictions)}
            return api.EstimatorSpec(mode, predictions, export_outputs=served)
        loss = tf1.reduce_mean(labels - predictions["y"])
        metrics = {
            "error": tf1.metrics.mean_absolute_error(labels, predictions["y"]),
            "largest": tf1.metrics.mean(tf1.reduce_max(predictions["y"])),
        }
        step = tf1.train.get_global_step()
        optimizer = tf1.train.GradientDescentOptimizer(params["rate"])
        with tf1.control_dependencies([loss]):  # Read before the update, whose size is constant.
            train = optimizer.minimize(loss, global_step=step) if mode == keys.TRAIN else None
        if "summary" in params:
            tf1.summary.scalar("loss", loss)  # In place of the one that an Estimator adds.
        tf1.summary.scalar("smallest", tf1.reduce_min(predictions["y"]))
        hook = tf1.train.LoggingTensorHook(
            {"loss": loss},
            every_n_iter=2,
            formatter=lambda values: logged.append(float(values["loss"])) or "",
        )
        return api.EstimatorSpec(
            mode, predictions, loss, train, metrics, training_hooks=[hook] if train else None
        )

    return model_fn


def dataset_of(tf1: Any, batch: int = 4, epochs: int | None = None) -> Any:
    """Returns an input function that returns a dataset."""

    def input_fn() -> Any:
        dataset = tf1.data.Dataset.from_tensor_slices(({"x": X}, Y))
        return dataset.repeat(epochs).batch(batch)

    return input_fn


def receiver_of(api: Any, tf1: Any) -> Any:
    """Returns a serving input function that takes "x"."""
    return api.export.build_raw_serving_input_receiver_fn(
        {"x": tf1.placeholder(tf1.float32, [None], name="x")}
    )


def observe(api: Any, tf1: Any, folder: str, pandas: Any) -> dict[str, list[float]]:
    """Trains, evaluates, predicts and exports; returns what was seen, by name, as numbers."""
    logged: list[float] = []
    seen: dict[str, list[float]] = {name: [] for names in SECTIONS.values() for name in names}

    def see(name: str, *numbers: Any) -> None:
        seen["tf.estimator." + name] += [
            float(number) for part in numbers for number in np.ravel(part)
        ]

    config = api.RunConfig(
        f"{folder}/a",
        save_checkpoints_steps=2,
        keep_checkpoint_max=2,
        save_summary_steps=1,  # TensorFlow's hook may see a step before or after its update.
        log_step_count_steps=4,
    )
    model = api.Estimator(model_fn_of(api, tf1, logged), config=config, params={"rate": 0.125})

    def weight() -> Any:
        return model.get_variable_value("dense/kernel")

    def one_shot() -> Any:
        return tf1.data.make_one_shot_iterator(dataset_of(tf1, 2)()).get_next()

    model.train(dataset_of(tf1), steps=5)
    see("Estimator.get_variable_value", weight(), model.get_variable_value("global_step"))
    see("EstimatorSpec", logged)
    model.train(one_shot, max_steps=7)
    see("Estimator.train", weight())
    model.train(one_shot, max_steps=7)
    see("Estimator.train", weight())
    model.train(dataset_of(tf1, 2, epochs=1), max_steps=100)
    see("Estimator.train", weight(), model.get_variable_value("global_step"))
    found = model.evaluate(dataset_of(tf1, 3, epochs=1))
    see("Estimator.evaluate", [found[k] for k in ("error", "global_step", "largest", "loss")])
    found = model.evaluate(dataset_of(tf1, 1), steps=2, name="again")
    see("Estimator.evaluate", [found[name] for name in sorted(found)])
    see("Estimator.latest_checkpoint", model.latest_checkpoint().rpartition("-")[2])
    see("RunConfig", kept(folder + "/a"), scalars(tf1, folder + "/a", "loss"))
    see("RunConfig", scalars(tf1, folder + "/a", "smallest"))
    see("RunConfig", scalars(tf1, folder + "/a/eval_again", "error"))
    see("Estimator.predict", [p["y"] for p in model.predict(dataset_of(tf1, 3, epochs=1))])
    whole = model.predict(dataset_of(tf1, 3, epochs=1), yield_single_examples=False)
    see("Estimator.predict", [len(batch["y"]) for batch in whole])
    with tf1.Graph().as_default():
        export = model.export_saved_model(folder + "/export", receiver_of(api, tf1))
    see("Estimator.export_saved_model", served(tf1, export))

    inputs = api.inputs.numpy_input_fn({"x": X}, Y, 3, num_epochs=2, shuffle=False)
    model.train(inputs)
    see("inputs.numpy_input_fn", weight(), model.get_variable_value("global_step"))
    if pandas is not None:
        frame = pandas.DataFrame({"x": X}), pandas.Series(Y)
        inputs = api.inputs.pandas_input_fn(*frame, 4, num_epochs=1, shuffle=True)
        model.train(inputs)
        see("inputs.pandas_input_fn", weight(), model.get_variable_value("global_step"))

    model = api.Estimator(
        model_fn_of(api, tf1, logged), config=config.replace(model_dir=f"{folder}/b"),
        params={"rate": 0.25, "summary": True},
    )  # fmt: skip
    with tf1.Graph().as_default():
        receiver = receiver_of(api, tf1)
        exporters = [
            api.FinalExporter("final", receiver),
            api.LatestExporter("latest", receiver, exports_to_keep=2),
            api.BestExporter("best", receiver, exports_to_keep=2),
        ]
        metrics, exports = api.train_and_evaluate(
            model,
            api.TrainSpec(dataset_of(tf1), max_steps=6),
            api.EvalSpec(dataset_of(tf1, epochs=1), None, exporters=exporters, throttle_secs=0),
        )
    see("RunConfig", scalars(tf1, folder + "/b", "loss"))
    see("train_and_evaluate", [metrics[name] for name in sorted(metrics)], len(exports))
    for name, exporter in (("final", "Final"), ("latest", "Latest"), ("best", "Best")):
        folders = sorted((Path(folder) / "b" / "export" / name).iterdir())
        see(f"{exporter}Exporter", len(folders), served(tf1, str(folders[-1])))
    return seen


def kept(folder: str) -> list[int]:
    """Returns the steps of the checkpoints in a folder."""
    return sorted(int(path.stem.rpartition("-")[2]) for path in Path(folder).glob("*.index"))


def scalars(tf1: Any, folder: str, tag: str) -> list[float]:
    """Returns steps and values of a tag in a folder's event files, in their order."""
    found = []
    for path in sorted(Path(folder).glob("events.out.tfevents.*")):
        for event in tf1.train.summary_iterator(str(path)):
            values = [v.simple_value for v in event.summary.value if v.tag == tag]
            found += [number for value in values for number in (event.step, value)]
    return found


def served(tf1: Any, folder: Any) -> Any:
    """Returns what an exported model answers to 1."""
    folder = folder.decode() if isinstance(folder, bytes) else folder
    with tf1.Graph().as_default(), tf1.Session() as session:
        meta = tf1.saved_model.load(session, ["serve"], folder)
        signature = meta.signature_def["served"]
        output, given = signature.outputs["y"].name, signature.inputs["x"].name
        return session.run(output, {given: [1]})


def native() -> dict[str, list[float]]:
    """Returns what TensorFlow alone does."""
    import pandas
    import tensorflow

    tf1 = tensorflow.compat.v1
    with tempfile.TemporaryDirectory() as folder:
        return observe(tf1.estimator, tf1, folder, pandas)


if __name__ == "__main__":
    json.dump(native(), sys.stdout, indent=1)
