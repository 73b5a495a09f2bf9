"""Writes models for programs without this package: a SavedModel, or a file for TFLite."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Iterator

from compat import UserError, tf, tf1
from compat._tensorflow import quietly
from compat.tracking.files import beside
from experiments.export.model import Model
from experiments.settings.setting import shortened

SIGNATURE = "serving_default"


def write(model: Model, folder: str) -> None:
    """Writes a SavedModel with one signature, `serving_default`.

    If the folder exists or cannot be written, this is a `UserError`, and nothing is left behind.
    """
    with _written(folder) as unfinished, quietly():
        signature = tf1.saved_model.build_signature_def(
            inputs=_described(model.inputs),
            outputs=_described(model.outputs),
            method_name=tf1.saved_model.PREDICT_METHOD_NAME,
        )
        builder = tf1.saved_model.Builder(str(unfinished))
        builder.add_meta_graph_and_variables(
            model.session,
            [tf1.saved_model.tag_constants.SERVING],
            signature_def_map={SIGNATURE: signature},
            assets_collection=tf1.get_collection(tf1.GraphKeys.ASSET_FILEPATHS),
            main_op=tf1.group(tf1.local_variables_initializer(), tf1.tables_initializer()),
            clear_devices=True,
            strip_default_attrs=True,
        )
        builder.save()


def write_tflite(model: Model, file: str) -> None:
    """Writes a file for TFLite, with the signature `serving_default`.

    If the file exists or cannot be written, or TensorFlow cannot convert the model, this is a
    `UserError`, and nothing is left behind.
    """
    with _written(file) as unfinished, quietly():
        saved = str(unfinished.parent / "saved_model")
        write(model, saved)
        try:
            converted = tf1.lite.TFLiteConverter.from_saved_model(
                saved, signature_key=SIGNATURE
            ).convert()
        except Exception as error:  # Releases of TensorFlow raise errors of different types.
            reason = shortened(" ".join(str(error).split()) or type(error).__name__)
            raise UserError(
                f"the model cannot be converted for TFLite ({reason}); export it with "
                "--format=saved_model"
            ) from error
        unfinished.write_bytes(converted)


def _described(tensors: object) -> dict[str, object]:
    build = tf1.saved_model.build_tensor_info
    return {name: build(tensor) for name, tensor in dict(tensors).items()}  # type: ignore


@contextlib.contextmanager
def _written(path: str) -> Iterator[Path]:
    """Yields a temporary path in the same folder, which is renamed to `path` at the end."""
    if os.path.lexists(path):
        raise UserError(f"{path} exists; remove it, or name another with --output")
    try:
        with beside(path) as unfinished:
            yield unfinished
    except (OSError, tf.errors.OpError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise UserError(
            f"{path} cannot be written ({reason}); name another place with --output"
        ) from error
