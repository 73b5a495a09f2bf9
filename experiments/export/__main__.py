"""Exports the model of a run, for programs that do not have this package.

python -m experiments.export runs/1
python -m experiments.export runs/1 --checkpoint=last --output=served/mnist/1
python -m experiments.export runs/1 --format=tflite
"""

from __future__ import annotations

import os
import sys

from compat.errors import UserError
from compat.processes.command import run as run_command
from experiments.export import commands

FORMATS = {"saved_model": "", "tflite": ".tflite"}


def main(argv: list[str]) -> None:
    """Runs the command line."""
    parser = commands.parser("experiments.export", __doc__)
    parser.add_argument(
        "--output", metavar="PATH", help="folder or file to create; default: LOGDIR/export/STEP"
    )
    parser.add_argument(
        "--format", choices=sorted(FORMATS), default="saved_model", help="default: saved_model"
    )
    parser.add_argument(
        "--mlflow", action="store_true", help="log the SavedModel to the MLflow run of LOGDIR, too"
    )
    parser.add_argument(
        "--register",
        metavar="NAME",
        help="register it in MLflow, too; the best version has the alias best",
    )
    options = parser.parse_args(argv)
    options.mlflow = options.mlflow or options.register is not None
    if options.mlflow and options.format != "saved_model":
        raise UserError(f"--mlflow logs a SavedModel; leave --format={options.format} out")
    commands.start_tensorflow()
    from experiments.export import mlflow_models, saved_model

    write = saved_model.write if options.format == "saved_model" else saved_model.write_tflite
    with commands.opened(options) as model:
        default = os.path.join(options.logdir, "export", f"{model.step}{FORMATS[options.format]}")
        path = options.output or default
        monitored = None
        if options.register is not None:
            monitored = mlflow_models.monitored(model)  # May raise; nothing is written yet.
        write(model, path)
        print(f"{path}: step {model.step}, the {model.which} checkpoint of {options.logdir}")
        for kind, tensors in (("input", model.inputs), ("output", model.outputs)):
            for name, tensor in sorted(tensors.items()):
                print(f"  {kind:<6} {name}: {tensor.dtype.name} {tensor.shape.as_list()}")
        if options.mlflow:
            uri = mlflow_models.log(model, path)
            print(f"  mlflow {uri}")
            if monitored is not None:
                said = mlflow_models.register(model, uri, options.register, monitored)
                print(f"  mlflow {said}")


if __name__ == "__main__":
    run_command(lambda: main(sys.argv[1:]))
