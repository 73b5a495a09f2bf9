from __future__ import annotations

import itertools
from typing import Any

import pytest

from compat.cluster.spec import ClusterSpec, Task, all_tasks, checked_cluster, only_task
from compat.errors import UserError

JOBS = {"worker": ["h1:2222", "h2:2222"], "ps": ["h0:2222"]}


def test_questions() -> None:
    cluster = ClusterSpec(JOBS)
    assert cluster.as_dict() == JOBS
    assert cluster.jobs == ["ps", "worker"]
    assert cluster.num_tasks("worker") == 2
    assert cluster.task_indices("worker") == [0, 1]
    assert cluster.task_address("worker", 1) == "h2:2222"
    assert cluster.job_tasks("worker") == ["h1:2222", "h2:2222"]
    assert repr(cluster) == ("ClusterSpec({'ps': ['h0:2222'], 'worker': ['h1:2222', 'h2:2222']})")
    assert [task.name for task in all_tasks(cluster)] == [
        "/job:ps/task:0",
        "/job:worker/task:0",
        "/job:worker/task:1",
    ]


def test_gaps_between_indices() -> None:
    cluster = ClusterSpec({"worker": {3: "h3:1", 1: "h1:1"}})
    assert cluster.num_tasks("worker") == 2
    assert cluster.task_indices("worker") == [1, 3]
    assert cluster.job_tasks("worker") == [None, "h1:1", None, "h3:1"]
    assert cluster.as_dict() == {"worker": {1: "h1:1", 3: "h3:1"}}
    with pytest.raises(UserError, match="^task index 0 of job 'worker' is not .*; use 1, 3$"):
        cluster.task_address("worker", 0)


def test_a_mapping_without_gaps_is_a_list() -> None:
    cluster = ClusterSpec({"worker": {1: "h1:1", 0: "h0:1"}})
    assert cluster == ClusterSpec({"worker": ("h0:1", "h1:1")})
    assert cluster.as_dict() == {"worker": ["h0:1", "h1:1"]}


class ForeignSpec:
    """Another library's description, of which only `as_dict` is known."""

    def as_dict(self) -> dict[str, Any]:
        return {"worker": ["h1:2222", "h2:2222"], "ps": {0: "h0:2222"}}


def test_made_of_another_description() -> None:
    assert ClusterSpec(ForeignSpec()) == ClusterSpec(JOBS)
    assert ClusterSpec(ClusterSpec(JOBS)) == ClusterSpec(JOBS)


def test_a_value() -> None:
    turned = ClusterSpec(dict(reversed(list(JOBS.items()))))
    other = ClusterSpec({"ps": ["h0:2222"]})
    assert turned == ClusterSpec(JOBS)
    assert hash(turned) == hash(ClusterSpec(JOBS))
    assert other != turned
    assert {turned: 1, other: 2}[ClusterSpec(JOBS)] == 1
    assert turned == JOBS  # As with TensorFlow's, a mapping of the same jobs will do.
    assert turned != {"ps": "malformed"}
    assert bool(turned)
    assert not ClusterSpec({})
    assert Task("ps", 0) == Task("ps", 0)
    with pytest.raises(AttributeError):
        Task("ps", 0).index = 1  # type: ignore[misc]


def test_copies_do_not_change_it() -> None:
    given = {"ps": ["h0:2222"], "worker": {7: "h1:2222"}}
    cluster = ClusterSpec(given)
    given["ps"] = ["h9:2222"]
    taken: Any = cluster.as_dict()
    taken["ps"].append("h8:2222")
    taken["worker"][8] = "h8:2222"
    cluster.task_indices("worker").append(9)
    assert cluster.as_dict() == {"ps": ["h0:2222"], "worker": {7: "h1:2222"}}


@pytest.mark.parametrize("sizes", list(itertools.product(range(4), repeat=3)), ids=str)
def test_any_shape_survives_the_round_trip(sizes: tuple[int, ...]) -> None:
    hosts = (f"[fd00::{number:x}]:{number}" for number in itertools.count(1))
    jobs = {
        job: [next(hosts) for _ in range(size)]
        for job, size in zip(("worker", "ps", "chief"), sizes)
        if size
    }
    cluster = ClusterSpec(jobs)
    assert cluster.as_dict() == jobs
    assert ClusterSpec(cluster.as_dict()) == cluster
    tasks = all_tasks(cluster)
    assert len(tasks) == sum(sizes)
    assert [cluster.task_address(task.job, task.index) for task in tasks] == [
        address for job in sorted(jobs) for address in jobs[job]
    ]


@pytest.mark.parametrize(
    ("jobs", "sentence"),
    [
        ("ps|h:1", r"cluster 'ps\|h:1' is not a mapping; write {'ps': \['host:port'\], ...}$"),
        ({0: ["h:1"]}, "job name 0 is malformed; use letters, digits and _"),
        ({"my job": ["h:1"]}, "job name 'my job' is malformed"),
        ({"ps": None}, "job 'ps' is None; .*; give its hosts, as by --ps_hosts$"),
        ({"ps": "h:1"}, r"job 'ps' is 'h:1'; expected a list as in \['localhost:2222'\]$"),
        ({"ps": None}, "job 'ps' is None; expected a list"),
        ({"ps": {"0": "h:1"}}, "task index '0' of job 'ps' is malformed; use 0, 1, 2, ...$"),
        ({"ps": {-1: "h:1"}}, "task index -1 of job 'ps' is malformed"),
        ({"ps": {True: "h:1"}}, "task index True of job 'ps' is malformed"),
        ({"ps": ["h:1", 1]}, "/job:ps/task:1: address 1 is not text; write 'host:port'$"),
    ],
)
def test_malformed(jobs: Any, sentence: str) -> None:
    with pytest.raises(UserError, match="^" + sentence) as caught:
        ClusterSpec(jobs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("jobs", "sentence"),
    [
        ({"ps": ["h:1", "h"]}, "/job:ps/task:1: address 'h' has no port; write host:port"),
        ({"ps": ["h:1", ""]}, "/job:ps/task:1: address '' is empty; write host:port"),
        ({"ps": {4: "h:x"}}, "/job:ps/task:4: port 'x' of 'h:x' is not a number"),
        (
            {"ps": ["h:1", "h:1"]},
            "address 'h:1' is given to both /job:ps/task:0 and /job:ps/task:1; "
            "give each task a port of its own$",
        ),
        (
            {"worker": ["h:1"], "ps": ["H:01"]},
            "address 'h:1' is given to both /job:ps/task:0 and /job:worker/task:0",
        ),
        ({"ps": ["[::1]:1"], "worker": ["[0::1]:1"]}, "address .* is given to both"),
    ],
)
def test_an_address_is_checked_where_it_is_used(jobs: Any, sentence: str) -> None:
    """As in TensorFlow, a cluster keeps any text."""
    assert ClusterSpec(jobs).as_dict() == ClusterSpec(ClusterSpec(jobs)).as_dict()
    with pytest.raises(UserError, match="^" + sentence) as caught:
        checked_cluster(jobs)
    assert "\n" not in str(caught.value)


def test_a_job_may_have_no_task() -> None:
    """As in TensorFlow; what such a cluster cannot do is said when a task asks for its role."""
    cluster = ClusterSpec({"ps": ["h:1"], "worker": [], "chief": {}})
    assert cluster.job_tasks("worker") == []
    assert cluster.num_tasks("chief") == 0
    assert [task.name for task in all_tasks(cluster)] == ["/job:ps/task:0"]


@pytest.mark.parametrize("jobs", ["ps|h:1", {0: ["h:1"]}, {"ps": None}, {"ps": [1]}])
def test_wrong_types_are_type_errors(jobs: Any) -> None:
    with pytest.raises(TypeError):
        ClusterSpec(jobs)


def test_the_only_task_need_not_be_named() -> None:
    alone = ClusterSpec({"local": {37: "localhost:0"}})
    assert only_task(alone, None, None) == Task("local", 37)
    with pytest.raises(UserError, match="^no job_name was given, and the cluster has ps, worker;"):
        only_task(ClusterSpec(JOBS), None, 0)
    with pytest.raises(UserError, match="^no task_index was given, and job 'worker' has 2 tasks;"):
        only_task(ClusterSpec(JOBS), "worker", None)


@pytest.mark.parametrize("question", ["num_tasks", "task_indices", "job_tasks"])
def test_unknown_job(question: str) -> None:
    with pytest.raises(UserError, match="^job 'gpu' is not in .* has ps, worker; correct the name"):
        getattr(ClusterSpec(JOBS), question)("gpu")


@pytest.mark.parametrize("index", [2, -1, None, "0", True])
def test_unknown_index(index: Any) -> None:
    with pytest.raises(UserError, match="^task index .* of job 'worker' is not .*; use 0, 1$"):
        ClusterSpec(JOBS).task_address("worker", index)
