"""Makes one update and one evaluation of an experiment, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import time
from typing import Any, Callable, Iterator, Mapping

import compat
from compat import UserError, tf
from experiments.launching import devices
from experiments.training import inputs
from experiments.training.program import build, schedule_of
from experiments.training.recording.model_table import as_text, model_table
from experiments.training.recording.report import named

_SHOWN = ("data", "model", "training")  # Groups of settings.
# Values for the settings that spread a run over processes, or need a longer run.
_ALONE = {
    "strategy": "local",
    "sync": False,
    "replicas_to_aggregate": 0,
    "communication_period": 1,
    "algorithm": "downpour",
    "moving_rate": 0.9,
    "evaluator": False,
    "profile_steps": None,
    "warm_start": None,
}


def alone(settings: Any) -> Any:
    """Returns settings changed to a run of one update in this process alone."""
    return dataclasses.replace(settings, **_ALONE, max_steps=1)


def dry_run(experiment: Any, given: Any) -> None:
    """Prints the settings, a batch's shapes and the model; runs one step and one evaluation.

    Everything runs in this process, and files are written only to a temporary folder.

    Args:
      experiment: an experiment with `alone(given)` as its settings, for one step in this process.
      given: the settings as the user gave them, which are printed.

    Raises:
      UserError: a run with these settings would raise it, or the loss is NaN or infinite.
    """
    settings = experiment.settings
    runtime = compat.select_runtime(settings.runtime)
    if runtime.has_coordinator:
        devices.configure_eager(settings, alone=True)
    fields = [f for f in dataclasses.fields(given) if f.metadata["group"] in _SHOWN]
    chosen = ", ".join(f"{f.name}={getattr(given, f.name)}" for f in fields if f.repr)
    print(f"settings: {chosen}; --print_config shows all")
    data = inputs.data_of(experiment.data())
    sizes = ", ".join(f"{size} for {name}" for name, size in data.sizes.items())
    print(f"examples: {sizes or 'a stream of unknown length'}")
    print(f"batch: {', '.join(_described(inputs.batch_specs(data), settings.batch_size))}")
    schedule = schedule_of(settings, runtime, data, None)
    program = build(experiment, runtime, data, None, schedule)
    print(as_text(model_table(runtime.variables(), _placement(given))))
    with tempfile.TemporaryDirectory() as folder, _session(folder, settings) as session:
        calls = []
        if not data.streams:
            number = inputs.examples(data.train)
            calls = [inputs.Batched(number, settings, [0]).next(1)]
        with _timed("an update"):
            values = session.run_many(program.train, *calls, count=1)
        _show(values, "train", experiment.loss_name)
        split = next((name for name in ("validation", "test") if name in program.evaluations), None)
        if split is not None:
            with _timed("an evaluation"):
                evaluated = program.evaluate(session, split)
            _show(evaluated, split, experiment.loss_name)
    print("nothing was recorded or saved; without --dry_run the run begins")


def _placement(given: Any) -> Callable[[Any], str]:
    """Returns a function from an operation to the device that a cluster would place it on."""
    if given.strategy != "ps":
        return lambda op: ""
    jobs = {"ps": given.num_ps, "worker": given.num_workers}
    hosts = {job: [f"{job}-{i}:2222" for i in range(number)] for job, number in jobs.items()}
    setter: Callable[[Any], str] = compat.replica_device_setter(cluster=hosts)
    return setter


@contextlib.contextmanager
def _session(folder: str, settings: Any) -> Iterator[Any]:
    supervisor = compat.Supervisor(
        is_chief=True,
        logdir=folder,
        summary_op=None,
        summary_writer=None,
        save_summaries_secs=0,
        save_model_secs=0,
    )
    with supervisor.managed_session("", devices.session_config(settings)) as session:
        yield session


@contextlib.contextmanager
def _timed(what: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    print(f"{what} took {time.monotonic() - started:.1f} s, with what TensorFlow prepares:")


def _show(values: Mapping[str, float], split: str, loss_name: str) -> None:
    shown = named(split, values, loss_name)
    print("  " + ", ".join(f"{name} {value:.6g}" for name, value in shown.items()))
    if not abs(values["loss"]) < float("inf"):
        raise UserError(
            f"{loss_name} is {values['loss']} in the first update, expected a finite number; "
            "check the data and the loss"
        )


def _described(specs: Any, batch_size: int) -> Iterator[str]:
    """Yields the name, shape and type of each part of a batch."""
    parts = specs.items() if isinstance(specs, Mapping) else [("(no name)", specs)]
    for name, spec in parts:
        if isinstance(spec, tf.TensorSpec):
            sizes = spec.shape.as_list() if spec.shape.rank is not None else ["?"]
            sizes = [batch_size if i == 0 and s is None else s for i, s in enumerate(sizes)]
            yield f"{name} {spec.dtype.name} [{', '.join(map(str, sizes))}]"
        else:
            yield f"{name} {spec}"
