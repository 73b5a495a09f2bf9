from __future__ import annotations

import pytest

from compat.cluster.roles import Role, chief_task, num_workers, role, strategy_names, trainers
from compat.cluster.spec import ClusterSpec, Task
from compat.errors import UserError

PLAIN = ClusterSpec({"ps": ["p0:1", "p1:1"], "worker": ["w0:1", "w1:1", "w2:1"]})
CHIEF = ClusterSpec({"ps": ["p0:1", "p1:1"], "worker": ["w0:1", "w1:1"], "chief": ["c0:1"]})
MASTER = ClusterSpec({"ps": ["p0:1"], "trainer": ["t0:1", "t1:1"], "master": ["m0:1"]})
TRAINERS = ClusterSpec({"ps": ["p0:1"], "trainer": ["t0:1", "t1:1"]})
LOCAL = ClusterSpec({"local": {37: "localhost:0"}})
ACTORS = ClusterSpec({"actor": ["a0:1", "a1:1"], "learner": ["l0:1"]})

TABLE = [
    (PLAIN, "ps", 0, Role.SERVE, Role.SERVE),
    (PLAIN, "ps", 1, Role.SERVE, Role.SERVE),
    (PLAIN, "worker", 0, Role.TRAIN_AS_CHIEF, Role.SERVE_AND_COORDINATE),
    (PLAIN, "worker", 1, Role.TRAIN, Role.SERVE),
    (PLAIN, "worker", 2, Role.TRAIN, Role.SERVE),
    (PLAIN, "evaluator", 0, Role.EVALUATE, Role.EVALUATE),
    (CHIEF, "ps", 0, Role.SERVE, Role.SERVE),
    (CHIEF, "worker", 0, Role.TRAIN, Role.SERVE),
    (CHIEF, "worker", 1, Role.TRAIN, Role.SERVE),
    (CHIEF, "chief", 0, Role.TRAIN_AS_CHIEF, Role.COORDINATE),
    (CHIEF, "evaluator", 0, Role.EVALUATE, Role.EVALUATE),
    (ClusterSpec({}), "evaluator", 0, Role.EVALUATE, Role.EVALUATE),
    (MASTER, "master", 0, Role.TRAIN_AS_CHIEF, Role.COORDINATE),
    (MASTER, "trainer", 1, Role.TRAIN, Role.SERVE),
    (TRAINERS, "trainer", 0, Role.TRAIN_AS_CHIEF, Role.SERVE_AND_COORDINATE),
    (TRAINERS, "trainer", 1, Role.TRAIN, Role.SERVE),
    (LOCAL, "local", 37, Role.TRAIN_AS_CHIEF, Role.TRAIN_AS_CHIEF),
]


@pytest.mark.parametrize(("cluster", "job", "index", "legacy", "modern"), TABLE)
def test_who_does_what(
    cluster: ClusterSpec, job: str, index: int, legacy: Role, modern: Role
) -> None:
    assert role(Task(job, index), cluster, False) is legacy
    assert role(Task(job, index), cluster, True) is modern


def test_a_learner_is_the_chief_of_actors() -> None:
    """Without any ps, which is legacy's alone: the learner holds the variables."""
    assert role(Task("learner", 0), ACTORS, False) is Role.TRAIN_AS_CHIEF
    assert role(Task("actor", 1), ACTORS, False) is Role.TRAIN
    assert num_workers(ACTORS, False) == 3
    assert [task.name for task in trainers(ACTORS, False)] == [
        "/job:learner/task:0",
        "/job:actor/task:0",
        "/job:actor/task:1",
    ]


def test_strategies_have_names_of_their_own() -> None:
    cluster, task = strategy_names(MASTER, Task("trainer", 1))
    assert task == Task("worker", 1)
    assert cluster == {"ps": ["p0:1"], "worker": ["t0:1", "t1:1"], "chief": ["m0:1"]}
    assert strategy_names(PLAIN, Task("worker", 2)) == (PLAIN, Task("worker", 2))
    assert strategy_names(LOCAL, Task("local", 37)) == (LOCAL, Task("local", 37))


@pytest.mark.parametrize(
    ("cluster", "has_coordinator", "names", "computing"),
    [
        (PLAIN, False, ["/job:worker/task:0", "/job:worker/task:1", "/job:worker/task:2"], 3),
        (PLAIN, True, ["/job:worker/task:0"], 3),
        (CHIEF, False, ["/job:chief/task:0", "/job:worker/task:0", "/job:worker/task:1"], 3),
        (CHIEF, True, ["/job:chief/task:0"], 2),
    ],
)
def test_trainers(
    cluster: ClusterSpec, has_coordinator: bool, names: list[str], computing: int
) -> None:
    assert [task.name for task in trainers(cluster, has_coordinator)] == names
    assert num_workers(cluster, has_coordinator) == computing
    assert trainers(cluster, has_coordinator)[0] == chief_task(cluster)


def test_the_first_worker_there_is_stands_in_for_the_chief() -> None:
    cluster = ClusterSpec({"ps": ["p0:1"], "worker": {1: "w1:1", 2: "w2:1"}})
    assert role(Task("worker", 1), cluster, False) is Role.TRAIN_AS_CHIEF
    assert trainers(cluster, True) == [Task("worker", 1)]


def test_a_worker_that_is_alone_needs_no_parameter_server() -> None:
    alone = ClusterSpec({"worker": ["w0:1"]})
    assert role(Task("worker", 0), alone, False) is Role.TRAIN_AS_CHIEF


@pytest.mark.parametrize(
    ("jobs", "job", "index", "has_coordinator", "sentence"),
    [
        ({"ps": ["h:1"], "worker": ["h:2"]}, "gpu", 0, False, "job 'gpu' .* has ps, worker;"),
        ({"ps": ["h:1"], "worker": ["h:2"]}, "chief", 0, True, "job 'chief' is not in"),
        ({"ps": ["h:1"], "worker": ["h:2"]}, "ps", 1, False, "task index 1 of job 'ps' .*use 0"),
        ({"ps": ["h:1"], "worker": ["h:2"]}, "ps", -1, True, "task index -1 of job 'ps' "),
        ({"worker": ["a:2", "b:2"]}, "worker", 0, False, "the cluster has worker and lacks ps;"),
        ({"ps": ["h:1"], "chief": ["h:2"]}, "ps", 0, True, "the cluster .* lacks worker; add"),
        ({}, "ps", 0, False, "the cluster has no job at all and lacks ps; add at least one ps"),
        ({"ps": [], "worker": ["h:2"]}, "worker", 0, False, "job 'ps' has no task; give it a "),
        ({"ps": ["h:1"], "evaluator": ["h:2"]}, "ps", 0, False, "an evaluator is in no cluster"),
        (
            {"ps": ["h:1"], "learner": ["h:2"], "actor": ["h:3"]},
            "actor",
            0,
            True,
            "the cluster has the jobs actor, learner, but the modern runtime has one",
        ),
        (
            {"ps": ["h:0"], "worker": ["h:2"]},
            "ps",
            0,
            False,
            "port 0 of /job:ps/task:0 at h:0 lets the system choose one, which the other tasks",
        ),
        (
            {"ps": ["h:1"], "worker": ["h:2"], "chief": ["h:3", "h:4"]},
            "ps",
            0,
            True,
            "the cluster has 2 chief tasks, but one is needed",
        ),
    ],
)
def test_no_such_role(
    jobs: dict[str, list[str]], job: str, index: int, has_coordinator: bool, sentence: str
) -> None:
    with pytest.raises(UserError, match="^" + sentence) as caught:
        role(Task(job, index), ClusterSpec(jobs), has_coordinator)
    assert "\n" not in str(caught.value)
