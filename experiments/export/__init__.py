"""Exports trained models as a SavedModel, for TFLite and to MLflow; and makes predictions.

with open_model("runs/1", which="best") as model:
    print(model.inputs, model.outputs)
    model.predict({"images": images})["class"]
    saved_model.write(model, "runs/1/export/500")
"""

from experiments.export.model import Model, open_model

__all__ = ["Model", "open_model"]
