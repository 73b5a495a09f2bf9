r"""Learns to walk through a grid world by asynchronous advantage actor-critic (A3C).

    python -m experiments.classics.a3c --strategy=ps --num_ps=1 --num_workers=2

As in such programs of that time, several threads share the session of a `Supervisor`. Each thread
plays games and updates the common network without waiting for the others. On the legacy runtime
every worker has such threads. On the modern runtime only the coordinator has them: it plays all
games, and the workers compute the updates. The best possible mean return is computed from the rules
of the game and logged at the end. Algorithm: Mnih et al., Asynchronous Methods for Deep
Reinforcement Learning, 2016, algorithm S3.
"""

from __future__ import annotations

import collections
import os
import sys
import threading
import time
from typing import Any

import numpy as np
from absl import flags

import compat
from compat import tf, tf1
from compat.cluster import access
from compat.tracking import Console
from experiments.launching import command_line, launcher, signals
from experiments.settings.flags import define_task_flags
from experiments.settings.place import place_from_flags

# Each step costs 0.01; G ends a game with 1, a pit (O) with -1. Walls (#) cannot be entered.
GRID = ("......", ".##.O.", "....O.", ".O#...", ".O#.#.", "....#G")
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
SLIP = 0.1  # Probability that a move goes in a random direction.
LONGEST = 50  # The most steps of a game.
ROLLOUT = 10  # Steps of each game between two updates.
GAMES = 16  # Games that a thread plays at the same time.
DISCOUNT = 0.99
EXPLORATION = 0.01  # Weight of the policy's entropy.
RECENT = 100  # Games of each thread whose mean return is logged.
EVALUATED = 2000  # Games of the evaluation.

flags.DEFINE_enum("strategy", "local", ("local", "ps"), "One process, or parameter servers.")
flags.DEFINE_integer("updates", 1500, "Updates of all threads.", lower_bound=1)
flags.DEFINE_integer("threads", 4, "Threads of a process.", lower_bound=1, upper_bound=100)
flags.DEFINE_float("learning_rate", 0.03, "Learning rate.", lower_bound=0)
flags.DEFINE_integer("seed", 1, "Seed of weights, games and actions.", lower_bound=0)
flags.DEFINE_string("logdir", None, "Log folder; default runs/a3c-DATE-TIME.")
define_task_flags("runtime", "num_ps", "num_workers", "run_token", "allow_network")


class Games:
    """Several games in the grid world at the same time; when one has ended, the next begins.

    Attributes:
      states: int64 `[count]`, the cell of each game.
      returns: the returns of all games that have ended, in order.
    """

    cells = "".join(GRID)
    starts = np.array([cell for cell, kind in enumerate(cells) if kind == "."])
    ends = np.array([kind in "GO" for kind in cells])
    rewards = np.array([{"G": 1.0, "O": -1.0}.get(kind, 0.0) - 0.01 for kind in cells])

    def __init__(self, count: int, seed: Any) -> None:
        self._random = np.random.RandomState(seed)
        self._next = _next_cells()
        self._sums, self._steps = np.zeros(count), np.zeros(count, int)
        self.states = self._random.choice(self.starts, count)
        self.returns: list[float] = []

    def move(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Makes a move in each game; returns the rewards and which games have ended, `[count]`."""
        count = len(actions)
        slips = self._random.random_sample(count) < SLIP
        directions = np.where(slips, self._random.randint(len(MOVES), size=count), actions)
        cells = self._next[self.states, directions]
        rewards = self.rewards[cells]
        self._sums += rewards
        self._steps += 1
        ended = self.ends[cells] | (self._steps == LONGEST)
        self.returns += self._sums[ended].tolist()
        self._sums[ended] = self._steps[ended] = 0
        self.states = np.where(ended, self._random.choice(self.starts, count), cells)
        return rewards, ended


def _next_cells() -> np.ndarray:
    """Returns the cell that each move leads to, int64 `[cells, moves]`."""
    height, width = len(GRID), len(GRID[0])
    found = np.empty([height * width, len(MOVES)], np.int64)
    for cell in range(height * width):
        for move, (down, right) in enumerate(MOVES):
            row, column = cell // width + down, cell % width + right
            is_free = 0 <= row < height and 0 <= column < width and GRID[row][column] != "#"
            found[cell, move] = row * width + column if is_free else cell
    return found


def best_return() -> float:
    """Returns the mean return of the best possible policy, by dynamic programming."""
    then = _next_cells()
    values = np.zeros(len(Games.cells))  # The return from each cell if no step is left.
    for _ in range(LONGEST):
        found = (Games.rewards + np.where(Games.ends, 0.0, values))[then]
        values = (1 - SLIP) * found.max(1) + SLIP * found.mean(1)
    return float(values[Games.starts].mean())


class Learner:
    """The network and the steps of this task; its threads play games by calling `play`.

    The server is None in a process that trains alone.
    """

    def __init__(self, values: flags.FlagValues, server: compat.Server | None) -> None:
        import models  # Not at the top: its classes need TensorFlow, and --help does not.

        self._values = values
        self.task = 0 if server is None else server.trainer_index
        setter = None
        if server is not None:
            worker = server.task.name
            setter = compat.replica_device_setter(cluster=server.cluster, worker_device=worker)
        with compat.device(setter):
            self._network = models.ActorCritic(len(Games.cells), len(MOVES), seed=values.seed)
            self._step = compat.get_or_create_global_step()
            self._optimizer = tf1.train.RMSPropOptimizer(values.learning_rate, 0.99, epsilon=0.01)
            states = tf.TensorSpec([None], tf.int64)
            returns = tf.TensorSpec([None], tf.float32)
            self.act = compat.step(self._act, [states], on_coordinator=True)
            self.learn = compat.step(self._learn, [states, states, returns])
        self.supervisor = compat.Supervisor(
            is_chief=server is None or server.is_chief,
            logdir=values.logdir,
            save_summaries_secs=1,
        )

    def _act(self, states: Any) -> dict[str, Any]:
        logits, values = self._network(states)
        actions = tf.random.categorical(logits, 1, seed=self._values.seed + 1000 * self.task)
        return {"actions": tf.squeeze(actions, 1), "values": values}

    def _learn(self, states: Any, actions: Any, returns: Any) -> dict[str, Any]:
        logits, values = self._network(states)
        log_policy = tf.nn.log_softmax(logits)
        chosen = tf.reduce_sum(log_policy * tf.one_hot(actions, len(MOVES)), axis=1)
        advantages = tf.stop_gradient(returns - values)
        entropy = -tf.reduce_mean(tf.reduce_sum(tf.exp(log_policy) * log_policy, axis=1))
        policy_loss = -tf.reduce_mean(chosen * advantages)
        value_loss = tf.reduce_mean(tf.square(returns - values))
        loss = policy_loss + 0.5 * value_loss - EXPLORATION * entropy
        variables = list(self._network.trainable_variables)
        train = self._optimizer.minimize(loss, self._step, variables)
        return {"loss": loss, "entropy": entropy, "value_loss": value_loss, "train": train}

    def play(self, session: Any, games: Games) -> None:
        """Plays games and makes updates until all updates have been made; runs in a thread."""
        while not self.supervisor.should_stop() and not self.is_done(session):
            rollout = []
            for _ in range(ROLLOUT):
                states = games.states
                actions = session.run(self.act, states)["actions"]
                rollout.append((states, actions, *games.move(actions)))
            following = session.run(self.act, games.states)["values"]
            batch = []
            for states, actions, rewards, ended in reversed(rollout):
                following = rewards + DISCOUNT * np.where(ended, 0.0, following)
                batch.append((states, actions, following))
            session.run(self.learn, *map(np.concatenate, zip(*batch)))

    def is_done(self, session: Any) -> bool:
        """Whether all updates have been made or scheduled."""
        return bool(session.planned_step >= self._values.updates)

    def evaluate(self, session: Any) -> float:
        """Returns the mean return of 2000 new games with the current policy."""
        games = Games(EVALUATED, [self._values.seed, 1])
        returns, goes_on = np.zeros(EVALUATED), np.ones(EVALUATED, bool)
        for _ in range(LONGEST):
            rewards, ended = games.move(session.run(self.act, games.states)["actions"])
            returns += rewards * goes_on
            goes_on &= ~ended
        return float(np.mean(returns))


def train(values: flags.FlagValues, server: compat.Server | None) -> None:
    """Trains as one of the tasks of a cluster, or alone."""
    learner = Learner(values, server)
    supervisor = learner.supervisor
    chief = supervisor.is_chief
    console = Console(values.logdir if chief else None, values.updates if chief else None)
    seeds = [[values.seed, 2, learner.task, thread] for thread in range(values.threads)]
    tables = [Games(GAMES, seed) for seed in seeds]
    with supervisor.managed_session("" if server is None else server.target) as session:

        def play(games: Games) -> None:
            with supervisor.stop_on_exception():
                learner.play(session, games)

        threads = [threading.Thread(target=play, args=[games], daemon=True) for games in tables]
        for thread in threads:
            thread.start()
        said = session.planned_step
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.1)
            step = min(session.planned_step, values.updates)
            console.progress(step)
            recent = [found for games in tables for found in games.returns[-RECENT:]]
            if chief and recent and step - said >= values.updates / 10:
                said, found = step, float(np.mean(recent))
                console.say(f"Step: {step},  Return: {found:.2f}")
                supervisor.summary_computed(session, {"train/return": found}, step)
        supervisor.coord.join(threads)
        if chief:
            # Waits for the updates that the modern runtime has scheduled.
            collections.deque(session.drain(), maxlen=0)
            found, best = learner.evaluate(session), best_return()
            console.say(
                f"Test-Return: {found:.2f}, the mean of {EVALUATED} games; at best {best:.2f}"
            )
            console.say(f"TensorBoard:  tensorboard --logdir {values.logdir}")
    console.close()


def main(values: flags.FlagValues) -> int:
    """Runs the task, the cluster or the process; returns the exit code."""
    values.logdir = values.logdir or time.strftime("runs/a3c-%Y%m%d-%H%M%S")
    cluster, task = place_from_flags(values, os.environ.get("TF_CONFIG"))
    if values.strategy == "ps" and (cluster is None or task is None):
        argv = [*sys.argv[1:], f"--logdir={values.logdir}"]
        program = launcher.this_program()
        return launcher.launch_local(program, argv, values.num_ps, values.num_workers)
    if cluster is not None:
        access.check_allowed(access.cluster_hosts(cluster), values.allow_network)
    with signals.signals():
        command_line.load_tensorflow()
        compat.select_runtime(values.runtime)
        server = None
        if cluster is not None and task is not None:
            server = compat.Server(
                cluster,
                task.job,
                task.index,
                runtime=values.runtime,
                run_token=values.run_token,
                allow_network=values.allow_network,
            )
            if server.serves:
                server.join()
                return 0
        train(values, server)
    return 0


if __name__ == "__main__":
    command_line.run(main)
