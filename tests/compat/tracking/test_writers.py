from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from compat.errors import UserError
from compat.tracking import MultiWriter, Writer, experiment, redacted, redacted_text
from compat.tracking.mlflow import run_id, spool
from compat.tracking.mlflow.stores import run_page, store_uri, tracking_command


class Noting(Writer):
    def __init__(self, fails: bool = False):
        self.calls: list = []
        self._fails = fails

    def scalars(self, step, values):
        self.calls.append((step, dict(values)))

    def close(self, status="FINISHED"):
        self.calls.append(status)
        if self._fails:
            raise OSError("disk full")


def test_multi_writer_forwards_to_all():
    writers = [Noting(), Noting()]
    both = MultiWriter(*writers)
    both.scalars(3, {"a": 1.0})
    both.close("FAILED")
    assert [w.calls for w in writers] == [[(3, {"a": 1.0}), "FAILED"]] * 2


def test_multi_writer_closes_all_when_one_raises():
    first, second = Noting(fails=True), Noting()
    with pytest.raises(OSError, match="disk full"):
        MultiWriter(first, second).close()
    assert second.calls == ["FINISHED"]


def test_importing_the_writers_is_cheap():
    source = (
        "import compat, sys, time; t = time.process_time(); import compat.tracking.mlflow.tracker;"
        "print(time.process_time() - t);"
        "print([m for m in ('tensorflow', 'tensorboard', 'mlflow', 'matplotlib', 'tqdm', 'PIL')"
        " if m in sys.modules])"
    )
    out = subprocess.check_output([sys.executable, "-c", source], timeout=60, text=True)
    seconds, loaded = out.splitlines()
    assert loaded == "[]"
    assert float(seconds) < 0.3  # Of a core, not of the clock: the machine may be busy.


@pytest.mark.parametrize(
    "name", ["api_token", "PASSWORD", "client_secret_2", "mytokens", "db_passwd", "APIKey"]
)
def test_secrets_are_hidden_by_name(name):
    assert redacted({name: "hush", "steps": 5, "sync": True}) == {
        name: "***", "steps": 5, "sync": True}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["max_tokens", "max_new_tokens", "num_tokens", "n_tokens", "tokens_per_batch"]
    + ["tokenizer", "tokenizer_name", "Tokenization", "signature", "model_signature"],
)
def test_settings_that_only_sound_like_secrets_are_shown(name):
    assert redacted({name: "words"}) == {name: "words"}
    assert redacted_text(f"--{name}=words") == f"--{name}=words"


@pytest.mark.parametrize(
    "uri, shown",
    [
        ("https://h/x?X-Amz-Signature=abc", "https://h/x?X-Amz-Signature=***"),
        ("http://me:p@ss@host:5000/a@b", "http://***@host:5000/a@b"),
        ("mysql+pymysql://u:p@db/x", "mysql+pymysql://***@db/x"),
        ("http://host/a", "http://host/a"),
        ("sqlite:////tmp/a@b.db", "sqlite:////tmp/a@b.db"),
        ("a@b.org", "a@b.org"),
        ("mysql://me:p/w@db:3306/runs", "mysql://***@db:3306/runs"),
        ("see http://host:5000/a@b", "see http://host:5000/a@b"),
        ("https://h/x?page=2&access_token=abc&y=1#z", "https://h/x?page=2&access_token=***&y=1#z"),
        ("https://h/x?sig=abc%3D", "https://h/x?sig=***"),
        ("(psycopg2) host=db password=hush user=me", "(psycopg2) host=db password=*** user=me"),
        ("could not reach 'http://u:p@h:1': refused", "could not reach 'http://***@h:1': refused"),
    ],
)
def test_user_parts_of_uris_are_hidden(uri, shown):
    assert redacted_text(uri) == shown
    assert redacted({"data": uri}) == {"data": shown}


@pytest.mark.parametrize(
    "text, shown",
    [
        (
            "Settings(api_key='a\\'b c', password=\"x\")",
            "Settings(api_key='***', password=\"***\")",
        ),
        ('{"password": "hu sh", "a": 1}', '{"password": "***", "a": 1}'),
        (
            r'{"env": "{\"password\": \"hush\", \"a\": 1}"}',
            r'{"env": "{\"password\": \"***\", \"a\": 1}"}',
        ),
        (
            "{'api_key': b'hush', 'pin_secret': 12, 'a': 1}",
            "{'api_key': b'***', 'pin_secret': ***, 'a': 1}",
        ),
        ("Login(secret=SecretStr('hush'), a=1)", "Login(secret=***), a=1)"),
        ("run --password hush --lr 1", "run --password *** --lr 1"),
        ("run --password 'hu sh' --lr 1", "run --password '***' --lr 1"),
        ("['--password', 'hush', '--lr', '1']", "['--password', '***', '--lr', '1']"),
        ("password = 'hush", "password = '***'"),
        ("a: 1\n  api_key: hush\nb: 2", "a: 1\n  api_key: ***\nb: 2"),
        ("Authorization: Bearer hush, Host: h", "Authorization: ***, Host: h"),
        ("--password --lr=1, max_tokens=5", "--password --lr=1, max_tokens=5"),
        ("lines: 'found no password: give one'", "lines: 'found no password: give one'"),
        ("expected a token, or a secret", "expected a token, or a secret"),
    ],
)
def test_values_of_names_are_hidden(text, shown):
    assert redacted_text(text) == shown
    assert redacted_text(shown) == shown


@pytest.mark.parametrize(
    "part",
    [
        "://",
        "://a:",
        "http://a:",
        "a:",
        "://a:'@",
        "token",
        "token-",
        "token=",
        "token: ",
        "?sig",
        "-",
    ]
    + [
        "password='",
        "password=\"'",
        "password=\\\\'",
        "--token ",
        "'--token', ",
        "token=a(",
        " ",
        "a",
    ],
)
def test_long_texts_are_redacted_in_no_time(part):
    text = part * (40_000 // len(part))
    began = time.process_time()
    redacted_text(text)
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize(
    "uri",
    ["http://h:1", "https://h", "mysql://h/d", "mysql+pymysql://h/d", "postgresql://h/d",
     "mssql+pyodbc://h/d", "databricks", "databricks://profile", "databricks-uc"],
)  # fmt: skip
def test_stores_that_mlflow_serves_are_taken_as_they_are(uri, logdir):
    assert store_uri(uri, logdir) == uri


def test_sqlite_paths_become_absolute(logdir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert store_uri(None, "run") == f"sqlite:///{tmp_path}/mlflow.db"
    assert store_uri("sqlite:///a.db?timeout=9", logdir) == f"sqlite:///{tmp_path}/a.db?timeout=9"
    assert store_uri("sqlite:////x/a.db", logdir) == "sqlite:////x/a.db"


@pytest.mark.parametrize(
    "uri", ["file:/tmp/x", "file:///tmp/x", "/tmp/mlruns", "mlruns", "ftp://h", "sqlite://",
            "sqlite:///:memory:", ""],
)  # fmt: skip
def test_other_stores_are_refused_with_sqlite_as_the_remedy(uri, logdir):
    with pytest.raises(UserError, match=r"not a store that MLflow can write.*give sqlite:////"):
        store_uri(uri, logdir)


def test_the_environment_names_the_store_and_the_experiment(logdir, monkeypatch):
    assert experiment("mine", "mnist") == "mine"
    assert experiment(None, "mnist") == "mnist"
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "ours")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://h:5")
    assert experiment("mine", "mnist") == "mine"
    assert experiment(None, "mnist") == "ours"
    assert store_uri("sqlite:////x/a.db", logdir) == "sqlite:////x/a.db"
    assert store_uri(None, logdir) == tracking_command(logdir, None) == "http://h:5"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "mlruns")
    with pytest.raises(UserError, match="^MLFLOW_TRACKING_URI 'mlruns' is not a store that MLflow"):
        store_uri(None, logdir)


def test_the_refusal_hides_a_password(logdir):
    with pytest.raises(UserError, match=r"'ftp://\*\*\*@h'"):
        store_uri("ftp://me:pw@h", logdir)


def test_lines_show_the_run(logdir, tmp_path, monkeypatch):
    command, server = "mlflow ui --backend-store-uri sqlite:///", "http://me:pw@h:5/"
    assert tracking_command(logdir, None) == f"{command}mlflow.db"
    assert tracking_command(logdir, server) == "http://***@h:5/"
    assert run_page(logdir, None) is run_page(logdir, server) is None
    os.makedirs(logdir)
    run_id.write(logdir, "ab12", "7")
    page = "/#/experiments/7/runs/ab12?workflowType=machine_learning"
    assert run_page(logdir, None) == f"http://127.0.0.1:5000{page}"
    assert run_page(logdir, server) == f"http://***@h:5{page}"
    # A run that resumes elsewhere stays where it began.
    spool.Spool(logdir).append(
        "start", id="6f", experiment="e", run=None, time=1, store=f"sqlite:///{tmp_path}/mlflow.db"
    )
    monkeypatch.chdir(logdir)
    assert tracking_command(logdir, None) == f"{command}{tmp_path}/mlflow.db"
