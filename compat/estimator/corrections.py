"""Corrects faults of tensorflow-estimator 2.15, the last release, which gets no more fixes."""

from __future__ import annotations

import os
from typing import Any

from compat._tensorflow import tf1

_STEP = "global_step"


def correct(estimator: Any, exporter: Any) -> None:
    """Corrects two faults of the package, in the releases that have them.

    A run without steps ends without a warning, and `BestExporter` always exports the first model of
    a resumed run, or never.

    Args:
      estimator: the package's module with `Estimator`.
      exporter: the package's module with `BestExporter`.
    """
    _warn_of_empty_inputs(estimator.Estimator)
    _keep_the_best(exporter.BestExporter)


def _warn_of_empty_inputs(kind: Any) -> None:
    """Restores 1.15's warning about a run without steps, which 2.15 never logs."""
    global _warns
    _warns = "any_step_done" in kind._train_with_estimator_spec.__code__.co_varnames
    train = kind._train_model

    def trained(self: Any, *args: Any, **kwargs: Any) -> Any:
        return warned(train(self, *args, **kwargs))

    kind._train_model = trained


_warns = False  # Whether the package itself warns of runs without steps.


def warned(loss: Any) -> Any:
    """Returns the last loss of a call of `train`; warns if it is None."""
    if loss is None and not _warns:
        tf1.logging.warning(
            "Training with estimator made no steps. Perhaps input is empty or misspecified."
        )
    return loss


def _keep_the_best(kind: Any) -> None:
    """Makes a resumed run export only models that are better than all earlier ones.

    `BestExporter` reads the best evaluation from event files, which already contain that of the new
    model. So no new model was better, and in 1.15 a process never exported its first model. 2.15
    exports the first model of each process, however bad. This leaves out the newest evaluation of
    the model's step, and also counts the exports of earlier processes.
    """
    export = kind.export
    if "_has_exported" not in export.__code__.co_names:
        return

    def exported(
        self: Any,
        estimator: Any,
        export_path: Any,
        checkpoint_path: Any,
        eval_result: Any,
        is_the_final_export: Any,
    ) -> Any:
        if self._model_dir != estimator.model_dir and self._event_file_pattern:
            self._has_exported = self._has_exported or _has_exports(export_path)
            self._step = eval_result.get(_STEP)
        return export(
            self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export
        )

    def best(self: Any, event_files: Any) -> Any:
        evaluations = [
            (event.wall_time, event.step, _scalars(event))
            for file in tf1.gfile.Glob(event_files or "")
            for event in tf1.train.summary_iterator(file)
        ]
        evaluations = sorted((each for each in evaluations if each[2]), key=lambda each: each[0])
        same_step = [place for place, each in enumerate(evaluations) if each[1] == self._step]
        for place in same_step[-1:]:
            del evaluations[place]
        best = None
        for _, _, result in evaluations:
            if best is None or self._compare_fn(best, result):
                best = result
        return best

    kind.export, kind._get_best_eval_result = exported, best


def _has_exports(folder: Any) -> bool:
    folder = os.fspath(folder)
    names = tf1.gfile.ListDirectory(folder) if tf1.gfile.IsDirectory(folder) else []
    return any(name.rstrip("/").isdigit() for name in names)


def _scalars(event: Any) -> dict[str, float]:
    values = event.summary.value
    return {each.tag: each.simple_value for each in values if each.HasField("simple_value")}
