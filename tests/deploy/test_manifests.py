"""The manifests: each is valid by its published schema, and says what the program understands."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import jsonschema
import pytest
import yaml

from compat.cluster.environment import cluster_from_hosts
from compat.errors import PeerError, UserError

pytestmark = pytest.mark.once
ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
SCHEMAS = Path(__file__).parent / "schemas"
KUBERNETES = ["statefulset.yaml", "tfjob.yaml", "volume.yaml"]
PARSE = (
    "import sys; from absl import flags; from experiments.training import main; "
    "from experiments.launching import command_line; from experiments.mnist import MNIST; "
    "main.define_flags(MNIST.Settings, MNIST.presets); command_line.parse(sys.argv); "
    "print(main.read_flags(MNIST, flags.FLAGS)[1:])"
)


def definitions() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("kubernetes", "tfjob"):
        found.update(json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))["$defs"])
    return found


def kinds() -> dict[tuple[str, str], str]:
    """Returns the definition of each kind, by apiVersion and kind."""
    found = {("kubeflow.org/v1", "TFJob"): "KubeflowOrgV1TFJob"}
    for name, schema in definitions().items():
        fields = schema.get("properties", {})
        if name.startswith("io.k8s.api.") and "enum" in fields.get("kind", {}):
            found[fields["apiVersion"]["enum"][0], fields["kind"]["enum"][0]] = name
    return found


def documents(*files: str) -> list[dict[str, Any]]:
    return [d for f in files for d in yaml.safe_load_all((DEPLOY / f).read_text(encoding="utf-8"))]


def pods(files: list[str]) -> Iterator[dict[str, Any]]:
    """Yields the pod templates of Kubernetes' manifests."""
    for document in documents(*files):
        spec = document.get("spec", {})
        for owner in (spec, *spec.get("tfReplicaSpecs", {}).values()):
            if "template" in owner:
                yield owner["template"]


def complaints(document: dict[str, Any]) -> list[str]:
    name = kinds()[document["apiVersion"], document["kind"]]
    schema = {"$ref": f"#/$defs/{name}", "$defs": definitions()}
    validator = jsonschema.Draft7Validator(schema)
    return [f"{list(e.path)}: {e.message}" for e in validator.iter_errors(document)]


@pytest.mark.parametrize("file", KUBERNETES)
def test_kubernetes_knows_every_field(file: str) -> None:
    for document in documents(file):
        assert complaints(document) == []


def test_schemas_refuse_fields_that_nobody_knows() -> None:
    (tfjob,) = documents("tfjob.yaml")
    tfjob["spec"]["tfReplicaSpecs"]["PS"]["template"]["spec"]["containers"][0]["arg"] = []
    tfjob["spec"]["cleanPodPolicy"] = "All"  # Where it stood before the operator's version 1.
    assert len(complaints(tfjob)) == 2


@pytest.mark.parametrize("file", ["compose.yaml", "compose.gpu.yaml"])
def test_compose_knows_every_field(file: str) -> None:
    schema = json.loads((SCHEMAS / "compose.json").read_text(encoding="utf-8"))
    (document,) = documents(file)
    jsonschema.Draft7Validator(schema).validate(document)


def test_only_workers_are_given_gpus() -> None:
    (compose,) = documents("compose.gpu.yaml")
    assert sorted(compose["services"]) == ["worker-0", "worker-1"]
    for service in compose["services"].values():
        (device,) = service["deploy"]["resources"]["reservations"]["devices"]
        assert device["capabilities"] == ["gpu"]


def test_exit_codes_are_those_of_the_program() -> None:
    (job,) = [d for d in documents("statefulset.yaml") if d["kind"] == "Job"]
    by_action = {
        rule["action"]: rule["onExitCodes"]["values"]
        for rule in job["spec"]["podFailurePolicy"]["rules"]
        if "onExitCodes" in rule
    }
    sigterm = 143
    assert by_action["FailJob"] == [1, UserError.exit_code]  # 1: the run itself failed
    assert by_action["Count"] == [PeerError.exit_code, sigterm]
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"  # The policy asks for it.
    (tfjob,) = documents("tfjob.yaml")
    policies = {k: v["restartPolicy"] for k, v in tfjob["spec"]["tfReplicaSpecs"].items()}
    assert policies == {"PS": "Always", "Worker": "ExitCode"}


def test_operator_finds_its_container_and_its_port() -> None:
    for template in pods(["tfjob.yaml"]):
        (container,) = template["spec"]["containers"]
        assert container["name"] == "tensorflow"
        assert container["ports"] == [{"name": "tfjob-port", "containerPort": 2222}]


def test_pods_have_no_rights_and_no_strangers() -> None:
    (policy,) = [d for d in documents("volume.yaml") if d["kind"] == "NetworkPolicy"]
    chosen = policy["spec"]["podSelector"]["matchLabels"]
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": {"matchLabels": chosen}}]}]
    templates = list(pods(KUBERNETES))
    assert len(templates) == 4
    for template in templates:
        assert chosen.items() <= template["metadata"]["labels"].items()
        assert template["spec"]["securityContext"]["runAsNonRoot"] is True
        for container in template["spec"]["containers"]:
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def understood(argv: list[str], folder: Path) -> str:
    command = [sys.executable, "-c", PARSE, *argv]
    done = subprocess.run(
        command, cwd=str(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60
    )
    assert done.returncode == 0, done.stdout.decode()
    return done.stdout.decode()


def test_flags_of_compose_are_understood(tmp_path: Path) -> None:
    (compose,) = documents("compose.yaml")
    cluster = cluster_from_hosts("ps-0:2222", "worker-0:2222,worker-1:2222")
    for name, service in compose["services"].items():
        job, _, index = name.partition("-")
        argv = [
            word.replace("/cluster.flags", f"{DEPLOY}/cluster.flags") for word in service["command"]
        ]
        assert f"({cluster!r}, Task(job={job!r}, index={index}))" in understood(argv, tmp_path)


def test_flags_of_kubernetes_are_understood(tmp_path: Path) -> None:
    (config,) = [d for d in documents("statefulset.yaml") if d["kind"] == "ConfigMap"]
    file = tmp_path / "cluster.flags"
    file.write_text(config["data"]["cluster.flags"], encoding="utf-8")
    found = []
    for template in pods(["statefulset.yaml"]):
        (container,) = template["spec"]["containers"]
        argv = [re.sub(r"\$\(\w+\)", "0", word) for word in container["args"]]
        argv = [word.replace("/etc/training/cluster.flags", str(file)) for word in argv]
        found.append(understood(argv, tmp_path))
    assert ["Task(job='ps', index=0)" in found[0], "Task(job='worker', index=0)" in found[1]] == [
        True,
        True,
    ]


def test_flags_of_the_operator_allow_the_network_of_the_policy() -> None:
    for template in pods(["tfjob.yaml"]):
        (container,) = template["spec"]["containers"]
        assert "--allow_network" in container["args"]


def test_numbers_of_tasks_agree() -> None:
    by_kind = {d["kind"]: d for d in documents("statefulset.yaml")}
    flags = dict(
        word[2:].split("=")
        for word in shlex.split(by_kind["ConfigMap"]["data"]["cluster.flags"])
        if "=" in word
    )
    cluster = cluster_from_hosts(flags["ps_hosts"], flags["worker_hosts"])
    workers = by_kind["Job"]["spec"]
    assert cluster.num_tasks("ps") == by_kind["StatefulSet"]["spec"]["replicas"]
    assert cluster.num_tasks("worker") == workers["completions"] == workers["parallelism"]
    assert cluster.task_address("worker", 1) == "worker-1.worker:2222"


def test_health_check_of_the_image_finds_a_task() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    (words,) = re.findall(r"^HEALTHCHECK .* CMD (\[.*?\])$", text.replace("\\\n", ""), re.MULTILINE)
    _, *command = json.loads(words)
    with socket.socket() as task:
        task.bind(("127.0.0.1", 0))
        env = {**os.environ, "TASK_PORT": str(task.getsockname()[1])}
        for start, expected in ((lambda: None, (1, b"refused\n")), (task.listen, (0, b""))):
            start()
            done = subprocess.run(
                [sys.executable, *command], env=env, stderr=subprocess.PIPE, timeout=60
            )
            assert (done.returncode, done.stderr) == expected
