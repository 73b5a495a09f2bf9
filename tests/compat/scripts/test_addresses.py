"""Hosts that are elsewhere: `--hosts` and `--local`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat.cluster.spec import Task
from compat.errors import UserError
from compat.scripts.clusters import addresses, inherited, task_arguments, tasks
from compat.scripts.reading import conversion

if TYPE_CHECKING:
    from tests.compat.scripts.conftest import RunScript


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (inherited.HOSTS, inherited.PORTS, inherited.COUNTS):
        monkeypatch.delenv(name, raising=False)


def test_named_hosts_are_mapped_and_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = addresses.parse("pc-01:2222=127.0.0.1:5001, pc-02:2222=127.0.0.1:5002")
    monkeypatch.setenv(inherited.HOSTS, json.dumps(hosts))
    assert addresses.mapped("pc-01:2222") == "127.0.0.1:5001"
    assert addresses.mapped("grpc://pc-02:2222") == "grpc://127.0.0.1:5002"
    assert addresses.mapped("pc-03:2222") == "pc-03:2222"
    assert addresses.mapped("local") == "local"


@pytest.mark.parametrize("option", ["pc-01", "pc-01:2222", "pc-01:2222=", "a:1=b", "a:x=b:1"])
def test_malformed_hosts_are_refused(option: str) -> None:
    with pytest.raises(UserError, match=r"expected HOST:PORT=HOST:PORT"):
        addresses.parse(option)


def test_stray_spaces_are_mended_and_it_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert addresses.mapped(" pc-09: 2222 ") == "pc-09:2222"
    assert addresses.mapped(" pc-09: 2222 ") == "pc-09:2222"
    said = capsys.readouterr().out
    assert said == "compat: address ' pc-09: 2222 ' is replaced by 'pc-09:2222'\n"


def test_all_processes_of_a_run_agree_on_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(inherited.PORTS, str(tmp_path / "ports.json"))
    tasks = {"ps": ["pc-01:2222"], "worker": ["pc-02:2222", "pc-03:2222"]}
    mapped = addresses.mapped_cluster(tasks)
    every = mapped["ps"] + mapped["worker"]
    assert len(set(every)) == 3
    assert all(address.startswith("127.0.0.1:") for address in every)
    assert addresses.mapped_cluster(tasks) == mapped
    assert addresses.mapped_cluster(mapped) == mapped, "what is here already stays"
    config = json.dumps({"cluster": tasks, "task": {"type": "ps", "index": 0}})
    assert json.loads(addresses.mapped_tf_config(config))["cluster"] == mapped


def test_a_cluster_is_as_large_as_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(inherited.COUNTS, json.dumps({"ps": 1, "worker": 1}))
    three = {"ps": ["a:1"], "worker": ["b:1", "c:1", "d:1"]}
    assert addresses.mapped_cluster(three) == {"ps": ["a:1"], "worker": ["b:1"]}
    monkeypatch.setenv(inherited.COUNTS, json.dumps({"worker": 4}))
    assert addresses.mapped_cluster(three)["worker"] == ["b:1", "c:1", "d:1", "worker-3.local:2222"]


def test_counts_of_a_cluster() -> None:
    assert tasks.parse("ps=1, worker=3") == {"ps": 1, "worker": 3}
    for option in ("ps", "ps=0", "worker=x", "worker=1,worker=2", ""):
        with pytest.raises(UserError, match=r"--cluster has .*, expected JOB=NUMBER"):
            tasks.parse(option)
    with pytest.raises(UserError, match=r"parameter servers only; add worker=1"):
        tasks.parse("ps=2")


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (
            "tf.app.flags.DEFINE_string('job_name', '', '')\n"
            "tf.app.flags.DEFINE_integer('task_index', 0, '')\n"
            "tf.app.flags.DEFINE_string('ps_hosts', '', '')",
            ["--job_name={job}", "--task_index={index}", "--ps_hosts={ps}"],
        ),
        (
            "p.add_argument('--job-name')\np.add_argument('-t', '--task-id', type=int)",
            ["--job-name={job}", "--task-id={index}"],
        ),
        (
            "flags.DEFINE_string('job_name', '', '')\nflags.DEFINE_integer('worker_index', 0, '')",
            ["--job_name={job}", "--worker_index={index}"],
        ),
        ("job, i = sys.argv[1], int(sys.argv[2])", ["{job}", "{index}"]),
        (
            "p.add_argument('task_index', type=int)\np.add_argument('job_name')\n"
            "p.add_argument('--worker_hosts')",
            ["{index}", "{job}", "--worker_hosts={worker}"],
        ),
        (
            "flags.DEFINE_integer('ps', 1, 'number of ps shards')\n"
            "flags.DEFINE_string('job_name', '', '')\nflags.DEFINE_integer('task_index', 0, '')",
            ["--job_name={job}", "--task_index={index}"],
        ),
        (
            "p.add_argument('server')\np.add_argument('worker')\np.add_argument('jobname')\n"
            "p.add_argument('index', type=int)",
            ["{worker}", "{job}", "{index}"],
        ),
        ("config = json.loads(os.environ['TF_CONFIG'])", []),
        ("tf.estimator.train_and_evaluate(model, training, evaluation)", []),
        ("print 'Python 2', sys.argv[1], sys.argv[2]", ["{job}", "{index}"]),
    ],
)
def test_a_script_shows_how_it_is_told_its_task(text: str, arguments: list[str]) -> None:
    how = task_arguments.spelling([conversion.from_text(text, "s.py")], [], "s.py")
    assert list(how.arguments) == arguments
    assert how.tf_config == any(word in text for word in ("TF_CONFIG", "train_and_evaluate"))


def test_words_of_the_user_are_the_first_ones() -> None:
    text = "".join(f"p.add_argument('{n}')\n" for n in ("server", "worker", "jobname", "index"))
    given = ["--steps", "3", "pc-01:1", "--rate=2", "pc-02:1"]
    how = task_arguments.spelling([conversion.from_text(text, "s.py")], given, "s.py")
    assert list(how.arguments) == ["{job}", "{index}"]


def test_a_script_reads_its_task_from_variables() -> None:
    text = (
        "try:\n    job, i = os.environ['JOB_NAME'], int(os.environ['TASK_INDEX'])\n"
        "    ps = os.environ.get('PS_HOSTS', '').split(',')\n"
        "    workers = os.getenv('WORKER_HOSTS').split(',')\nexcept KeyError:\n    job = None\n"
    )
    how = task_arguments.spelling([conversion.from_text(text, "s.py")], [], "s.py")
    hosts = {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2", "127.0.0.1:3"]}
    assert how.environment(Task("worker", 1), hosts) == {
        "JOB_NAME": "worker",
        "TASK_INDEX": "1",
        "PS_HOSTS": "127.0.0.1:1",
        "WORKER_HOSTS": "127.0.0.1:2,127.0.0.1:3",
    }
    text = "name = os.environ['JOB_NAME']"
    with pytest.raises(UserError, match="JOB_NAME and TASK_INDEX"):
        task_arguments.spelling([conversion.from_text(text, "s.py")], [], "s.py")


def test_a_module_of_the_script_may_show_it(tmp_path: Path) -> None:
    (tmp_path / "options.py").write_text(
        "tf.app.flags.DEFINE_string('job_name', '', '')\n"
        "tf.app.flags.DEFINE_integer('task_id', 0, '')\n"
    )
    (tmp_path / "broken.py").write_text("def f(:\n")
    script = tmp_path / "s.py"
    script.write_text("import broken, options\n")
    how = task_arguments.spelling(conversion.read(str(script)), [], str(script))
    assert how.arguments == ["--job_name={job}", "--task_id={index}"]


def test_a_script_that_does_not_show_it_is_refused() -> None:
    with pytest.raises(UserError, match=r"s\.py does not show how .* --task_args="):
        task_arguments.spelling([conversion.from_text("print('no flags')", "s.py")], [], "s.py")


@pytest.mark.cluster
def test_a_client_of_an_address_that_is_a_default_finds_its_task(run_script: RunScript) -> None:
    ran = run_script(
        """
        import tensorflow as tf
        tf.app.flags.DEFINE_string("ps_hosts", "localhost:2222", "")
        tf.app.flags.DEFINE_string("worker_hosts", "localhost:2223", "")
        tf.app.flags.DEFINE_string("job_name", "worker", "")
        tf.app.flags.DEFINE_integer("task_index", 0, "")
        FLAGS = tf.app.flags.FLAGS
        hosts = {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
        server = tf.train.Server(hosts, FLAGS.job_name, FLAGS.task_index)
        if FLAGS.job_name == "ps":
            server.join()
        with tf.device("/job:ps/task:0"):
            count = tf.Variable(40)
        with tf.Session("grpc://localhost:2223") as session:
            session.run(tf.global_variables_initializer())
            print("sum %d" % session.run(count + 2))
        """,
        options=("--cluster", "ps=1,worker=1"),  # Another would wait for one that has ended.
    )
    assert ran.code == 0, ran.out + ran.err
    assert "[worker 0] sum 42" in ran.out.splitlines()


@pytest.mark.cluster
def test_a_cluster_whose_tasks_read_variables_and_are_localhost(run_script: RunScript) -> None:
    ran = run_script(
        """
        import os
        import tensorflow as tf
        job, index = os.environ["JOB_NAME"], int(os.environ["TASK_INDEX"])
        ps, workers = os.environ["PS_HOSTS"], os.getenv("WORKER_HOSTS")
        hosts = {"ps": ps.split(","), "worker": workers.split(",")}
        hosts[job][index] = "localhost:" + hosts[job][index].split(":")[1]
        server = tf.train.Server(hosts, job_name=job, task_index=index)
        if job == "ps":
            server.join()
        with tf.device("/job:ps/task:0"):
            weight = tf.Variable(2.0)
        with tf.Session(server.target) as session:
            session.run(weight.initializer)
            print(session.run(weight))
        """,
        options=("--cluster=ps=1,worker=1",),
    )
    assert ran.code == 0, ran.err
    assert "[worker 0] 2.0" in ran.out.splitlines()
