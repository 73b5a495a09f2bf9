from __future__ import annotations

import json
from typing import Any

import pytest

from compat.cluster.environment import cluster_from_tf_config
from compat.cluster.spec import ClusterSpec, Task
from compat.errors import UserError

CLUSTER = {"ps": ["h0:2222"], "worker": ["h1:2222", "h2:2222"]}


def tf_config(cluster: Any, job: Any, index: Any) -> str:
    return json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})


@pytest.mark.parametrize(("job", "index"), [("ps", 0), ("worker", 0), ("worker", 1)])
def test_a_task_of_the_cluster(job: str, index: int) -> None:
    expected = (ClusterSpec(CLUSTER), Task(job, index))
    assert cluster_from_tf_config(tf_config(CLUSTER, job, index)) == expected


def test_what_else_is_in_it_is_left_alone() -> None:
    config = json.loads(tf_config(CLUSTER, "ps", 0))
    config["environment"] = "cloud"
    config["task"]["trial"] = "1"
    assert cluster_from_tf_config(json.dumps(config))[1] == Task("ps", 0)


def test_master_is_the_chief() -> None:
    cluster, task = cluster_from_tf_config(tf_config({**CLUSTER, "master": ["m:1"]}, "master", 0))
    assert cluster == ClusterSpec({**CLUSTER, "chief": ["m:1"]})
    assert task == Task("chief", 0)


@pytest.mark.parametrize(("job", "index"), [("worker", 1), ("evaluator", 0), ("evaluator", 1)])
def test_evaluators_are_taken_out_of_the_cluster(job: str, index: int) -> None:
    listed = {**CLUSTER, "evaluator": ["e0:1", "e1:1"]}
    expected = (ClusterSpec(CLUSTER), Task(job, index))
    assert cluster_from_tf_config(tf_config(listed, job, index)) == expected


@pytest.mark.parametrize("cluster", [CLUSTER, {}])
def test_an_evaluator_need_not_be_listed(cluster: dict[str, Any]) -> None:
    expected = (ClusterSpec(cluster), Task("evaluator", 0))
    assert cluster_from_tf_config(tf_config(cluster, "evaluator", 0)) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "'' is not valid JSON"),
        ("{'cluster': 1}", "\"{'cluster': 1}\" is not valid JSON"),
        ("[]", r"\[\] is not an object with a key 'cluster'"),
        ("null", "None is not an object"),
        ("{}", "the key 'cluster' is missing in {}"),
        (json.dumps({"cluster": CLUSTER}), "the key 'task' is missing in {'cluster'"),
        (json.dumps({"cluster": [], "task": {}}), r"'cluster' is \[\], expected an object"),
        (json.dumps({"cluster": {}, "task": None}), "'task' is None, expected an object"),
        (json.dumps({"cluster": {}, "task": {}}), "the key 'type' is missing in {}"),
        (json.dumps({"cluster": {}, "task": {"type": "ps"}}), "the key 'index' is missing"),
        (tf_config(CLUSTER, 3, 0), "'type' is 3, expected text"),
        (tf_config(CLUSTER, "ps", "0"), "'index' is '0', expected a whole number"),
        (tf_config(CLUSTER, "ps", 0.0), "'index' is 0.0, expected a whole number"),
        (tf_config(CLUSTER, "ps", False), "'index' is False, expected a whole number"),
        (
            tf_config(CLUSTER, "gpu", 0),
            "task type 'gpu' is unknown, expected one of chief, evaluator, master, ps, worker",
        ),
        (tf_config(CLUSTER, "worker", 2), "task index 2 of job 'worker' .*; use 0, 1"),
        (tf_config(CLUSTER, "worker", -1), "task index -1 of job 'worker' .*; use 0, 1"),
        (tf_config(CLUSTER, "chief", 0), "job 'chief' is not in the cluster, which has ps, worker"),
        (tf_config(CLUSTER, "master", 0), "job 'chief' is not in the cluster"),
        (tf_config(CLUSTER, "evaluator", -1), "task index -1 is negative"),
        (tf_config({**CLUSTER, "evaluator": ["e:1"]}, "evaluator", 1), "task index 1 of job 'eva"),
        (
            tf_config({**CLUSTER, "master": ["m:1"], "chief": ["c:1"]}, "chief", 0),
            "the cluster has both a master and a chief",
        ),
        (tf_config({"ps": "h:1"}, "ps", 0), "job 'ps' is 'h:1'; expected a list"),
        (tf_config({"ps": ["h"]}, "ps", 0), "/job:ps/task:0: address 'h' has no port"),
        (tf_config({"ps": ["h:1"], "worker": ["h:1"]}, "ps", 0), "address 'h:1' is given to both"),
        (tf_config({"ps": [7]}, "ps", 0), "/job:ps/task:0: address 7 is not text"),
    ],
)
def test_malformed(text: str, sentence: str) -> None:
    with pytest.raises(UserError, match="^TF_CONFIG: " + sentence) as caught:
        cluster_from_tf_config(text)
    message = str(caught.value)
    assert "\n" not in message
    example = message.rpartition("a right one is ")[2]
    assert cluster_from_tf_config(example)[1] == Task("worker", 0)
