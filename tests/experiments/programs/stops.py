"""A run that a callback ends early, from the hook that a setting names."""

from dataclasses import dataclass

from digits import Digits

from experiments import Callback, run, setting


class Stops(Callback):
    """Stops the run in one of its hooks, and prints at the end why it has ended."""

    def __init__(self, hook, step):
        self.hook, self.step = hook, step

    def stop_if(self, hook, run):
        if hook == self.hook and run.step >= self.step:
            run.stop(f"enough\nof {hook}")

    def on_start(self, run):
        self.stop_if("on_start", run)

    def on_step(self, run, values):
        self.stop_if("on_step", run)

    def on_evaluation(self, run, values):
        self.stop_if("on_evaluation", run)

    def on_end(self, run, result):
        print(f"ended at step {result.step}: {result.stopped}")


class Stopped(Digits):
    """The digits, for more epochs than anyone waits for."""

    @dataclass(frozen=True)
    class Settings(Digits.Settings):
        """Settings of this experiment."""

        hook: str = setting("on_step", "Hook that stops the run.")
        stop_at: int = setting(20, "First step at which it does.")
        epochs: int = 100_000
        steps_per_loop: int = 5

    def callbacks(self):
        return [Stops(self.settings.hook, self.settings.stop_at)]


if __name__ == "__main__":
    run(Stopped)
