"""Runs the trials of a study of Optuna; each is a run of a program, whose evaluations are compared.

Optuna counts a trial that was interrupted as failed. It is enqueued again with the same values and
with its folder as an attribute, so that the next trial resumes the run.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from compat.errors import UserError
from experiments.evaluation import selection
from experiments.launching.side_by_side import Ended, Programs
from experiments.launching.signals import Stop
from experiments.settings.space import Values

_FOLDER = "folder"


@dataclass
class Trials:
    """The trials of one study; this process is the only one that runs them."""

    optuna: Any  # The module.
    study: Any
    space: Mapping[str, Values]  # The values to try of each setting, by name.
    command: Sequence[str]  # The command of a run, without these settings, --logdir and --run_name.
    folder: str  # The folder of the study, which has the log folders.
    monitor: str  # The name of the value by which runs are compared.
    mode: str  # "max" or "min", as for `selection.best`.
    record: Callable[[int, float], object]  # Called with the number of trials and the best value.

    def run(self, number: int, jobs: int, programs: Programs, stop: Stop) -> None:
        """Runs trials, `jobs` at a time, until there are `number` trials or a stop is requested.

        A space of at most `number` combinations has a trial for each of them, and no more.

        If a run reports invalid input before any run is complete, its error is raised as a
        `UserError`.
        """
        self._resume()
        number = self._enqueue_all(number)
        running: dict[str, Any] = {}
        reported: dict[str, int] = {}
        pruned: set[str] = set()
        done, stopping = self._count(), False
        while True:
            while not stop.requested and len(running) < jobs and done + len(running) < number:
                trial = self.study.ask(self._distributions())
                name = self.name(trial)
                running[name], reported[name] = trial, 0
                self._start(name, trial.params, programs)
            if not running:
                break
            ended = programs.poll()
            over = {end.name for end in ended}
            for name, trial in running.items():
                is_behind = self._report(trial, reported, is_pruned=name in pruned)
                if is_behind and name not in over:  # A run that has ended is complete.
                    pruned.add(name)
                    programs.stop(name)
            for end in ended:
                trial = running.pop(end.name)
                if not (stop.requested and end.code and end.name not in pruned):
                    self._tell(trial, end, end.name in pruned)
                    done = self._count()
            if stop.requested and not stopping:
                stopping = True
                for name in running:
                    programs.stop(name)
        self._resume()

    def _enqueue_all(self, number: int) -> int:
        """Enqueues all combinations if they are at most `number`; returns the number of trials.

        Optuna would draw some of them again, and leave out others.
        """
        values = [each.all for each in self.space.values()]
        size = 1
        for each in values:
            size *= len(each)
        if not 0 < size <= number:
            return number
        if size < number:
            print(f"the space has {size} combinations, so there are {size} trials", flush=True)
        for combination in itertools.product(*values):
            params = dict(zip(self.space, combination))
            self.study.enqueue_trial(params, skip_if_exists=True)
        return size

    def _report(self, trial: Any, reported: dict[str, int], *, is_pruned: bool) -> bool:
        """Reports the new values of a run to Optuna; returns whether to prune the trial now."""
        name, is_over = self.name(trial), is_pruned
        for value in self._values(name)[reported[name] :]:
            reported[name] += 1
            # By the number of the evaluation, since the steps of asynchronous runs differ.
            trial.report(value, reported[name])
            is_over = is_over or trial.should_prune()
        return is_over and not is_pruned

    def best(self) -> Any:
        """Returns the best complete trial; None if no trial is complete."""
        state = self.optuna.trial.TrialState.COMPLETE
        complete = self.study.get_trials(deepcopy=False, states=(state,))
        return self.study.best_trial if complete else None

    def name(self, trial: Any) -> str:
        """Returns the name of a trial's run and of its log folder."""
        return str(trial.user_attrs.get(_FOLDER, f"trial-{trial.number}"))

    def logdir(self, name: str) -> str:
        """Returns the log folder of the trial with this name."""
        return os.path.join(self.folder, name)

    def _start(self, name: str, params: Mapping[str, Any], programs: Programs) -> None:
        words = flags_of(params)
        print(f"{name}: {' '.join(words)}", flush=True)
        words += [f"--logdir={self.logdir(name)}", f"--run_name={name}"]
        programs.start(name, [*self.command, *words], Path(self.logdir(name), "output.log"))

    def _tell(self, trial: Any, end: Ended, was_pruned: bool) -> None:
        states = self.optuna.trial.TrialState
        found = None
        if end.code == 0:
            found = selection.best(selection.read(self.logdir(end.name)), self.monitor, self.mode)
        if found is not None:
            value = found.values[self.monitor]
            self.study.tell(trial, value)
            best = self.best()
            mark = ", the best so far" if best.number == trial.number else ""
            print(f"{end.name}: {self.monitor} {value:.4g} at step {found.step}{mark}", flush=True)
            self.record(self._count(), best.value)
        elif was_pruned:
            self.study.tell(trial, state=states.PRUNED)
            count = len(self._values(end.name))
            print(f"{end.name}: pruned after {count} evaluations", flush=True)
        else:
            self.study.tell(trial, state=states.FAIL)
            reason = end.line[len("error: ") :] if end.line.startswith("error: ") else end.line
            if end.code == 0:
                reason = f"{self.monitor} was never finite; give data() a validation split"
            print(f"{end.name}: failed with exit code {end.code} ({reason})", flush=True)
            if end.code == UserError.exit_code and self.best() is None:
                raise UserError(reason)

    def _values(self, name: str) -> list[float]:
        """Returns the values of the monitor that a run has recorded so far."""
        found = selection.read(self.logdir(name))
        return [e.values[self.monitor] for e in found if self.monitor in e.values]

    def _distributions(self) -> dict[str, Any]:
        kinds = self.optuna.distributions
        found = {}
        for name, values in self.space.items():
            if values.choices:
                found[name] = kinds.CategoricalDistribution(values.choices)
            else:
                kind = kinds.IntDistribution
                kind = kind if isinstance(values.low, int) else kinds.FloatDistribution
                found[name] = kind(values.low, values.high, log=values.log)
        return found

    def _latest(self) -> dict[str, Any]:
        return {self.name(trial): trial for trial in self.study.get_trials(deepcopy=False)}

    def _count(self) -> int:
        """Returns the number of trials that have ended and are not waiting to be resumed."""
        return sum(trial.state.is_finished() for trial in self._latest().values())

    def _resume(self) -> None:
        """Marks interrupted trials as failed, and enqueues trials that resume their runs."""
        state = self.optuna.trial.TrialState
        latest = self._latest()
        for trial in self.study.get_trials(states=(state.RUNNING,)):
            name = self.name(trial)
            if latest[name].number == trial.number:
                self.study.enqueue_trial(trial.params, user_attrs={_FOLDER: name})
                print(f"{name}: interrupted; its run resumes", flush=True)
            self.study.tell(trial.number, state=state.FAIL)


def flags_of(settings: Mapping[str, Any]) -> list[str]:
    """Returns settings as flags of a command line."""
    return [f"--{name}={value}" for name, value in settings.items()]
