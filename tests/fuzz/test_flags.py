"""Command lines, up to where TensorFlow would be loaded."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from absl import flags
from hypothesis import example, given
from hypothesis import strategies as st

from compat.cluster.environment import check_agreement
from compat.cluster.roles import role
from compat.errors import UserError
from compat.runtime.registry import has_coordinator
from compat.scripts.commands import check, run
from compat.scripts.shims import flags as script_flags
from compat.tracking import store_uri
from compat.tracking.redaction import redacted_text
from experiments.launching import command_line
from experiments.mnist import MNIST
from experiments.settings.flags import define_flags, settings_from_flags
from experiments.settings.place import place_from_flags
from tests.fuzz.conftest import assert_is_a_line, attempt, forget, mutated, times, words

pytestmark = pytest.mark.once

TASK = ["--job_name=ps", "--ps_hosts=a:1", "--worker_hosts=b:1,b:2", "--task_index=0"]
OTHERS = ["--sync", "--strategy=multi_worker", "--runtime=legacy", "--shared_logdir", "--help"]
NUMBERS = ["epochs", "max_steps", "batch_size", "learning_rate", "seed", "inter_op_threads"]
NUMBERS += ["steps_per_loop", "replicas_to_aggregate", "gpu_memory_fraction", "rendezvous_timeout"]
FLAGS = st.one_of(
    st.sampled_from([*TASK, *OTHERS]),
    st.builds("--{}={}".format, st.sampled_from(NUMBERS), st.integers() | st.floats()),
    words(*TASK, *OTHERS, "--logdir=/logs", "--tracking_uri=sqlite:///a", tokens=("--no", "-")),
    words("--run_name=wide-1", "--experiment_name=/Users/me/mnist", tokens=("..", "/", "\\")),
)
TF_CONFIG = json.dumps(
    {"cluster": {"ps": ["a:1"], "worker": ["b:1", "b:2"]}, "task": {"type": "ps", "index": 0}}
)

Settings = MNIST.Settings


@pytest.fixture(scope="module")
def values() -> flags.FlagValues:
    """The flags of `experiments.mnist`."""
    own = flags.FlagValues()
    define_flags(Settings, MNIST.presets, values=own)
    return own


def parse(values: flags.FlagValues, argv: list[str]) -> Any:
    """Returns the exit code with which the program ends here, None if it goes on."""
    forget(values)
    with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(said):
        try:
            command_line.parse(["mnist", *argv], values)
        except SystemExit as ending:
            if ending.code == 2:
                assert said.getvalue().startswith("error: ")
                assert said.getvalue().endswith("\n")
                assert_is_a_line(said.getvalue()[:-1])
            return ending.code
    return None


def begin(values: flags.FlagValues, tf_config: str | None) -> Any:
    """Does what the program does until it loads TensorFlow."""
    config = settings_from_flags(values, Settings).resolved("mnist")
    cluster, task = place_from_flags(values, tf_config)
    if cluster is not None and task is not None:
        check_agreement(cluster, task, {} if tf_config is None else {"TF_CONFIG": tf_config})
        role(task, cluster, has_coordinator(config.runtime))
    return config


def assert_begins_or_refuses(values: flags.FlagValues, argv: list[str], tf_config: Any) -> None:
    code = attempt(parse, values, argv)
    if code is not None:
        assert code in (0, 2)
        return
    config = attempt(begin, values, tf_config)
    if isinstance(config, Settings):
        # What protobufs of TensorFlow and TensorBoard can take.
        numbers = [value for value in config.params().values() if isinstance(value, int)]
        assert all(int(float(number)) == number for number in numbers)
        assert max(config.inter_op_threads, config.intra_op_threads) < 1 << 31
        for name in (config.experiment_name, config.run_name or "a"):
            assert name.strip()
            name.encode()  # No database takes what is no text.
            assert ".." not in name.replace("\\", "/").split("/")


@times(4)
@given(st.lists(FLAGS, max_size=6), st.none() | words(TF_CONFIG))
@example(["--inter_op_threads=9999999999"], None)
@example(["--max_steps=" + "9" * 400], None)
@example(["--logdir="], None)
@example(["--run_name=a\udcff"], None)
@example(["--experiment_name=\u2028"], None)
@example(["--strategy=ps", "--job_name=a\nb", *TASK[1:]], None)
def test_flags(values: flags.FlagValues, argv: list[str], tf_config: str | None) -> None:
    argv = [word for word in argv if not word.startswith("--flagfile")]
    assert_begins_or_refuses(values, ["--strategy=ps", *argv], tf_config)
    assert_begins_or_refuses(values, argv, tf_config)


@pytest.fixture(scope="module")
def flagfile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(tmp_path_factory.mktemp("flags") / "cluster.flags")


@times(2)
@given(mutated("\n".join(["# ps", "--strategy=ps", *TASK]).encode(), tokens=(b"\n", b"--", b"\0")))
@example(b"--logdir=a\xff")
@example(b"--logdir=a\0b")
def test_files_of_flags(values: flags.FlagValues, flagfile: Path, raw: bytes) -> None:
    flagfile.write_bytes(raw)
    assert_begins_or_refuses(values, [f"--flagfile={flagfile}"], None)


@times(3)
@given(words("sqlite:///runs/a.db", "http://me:pw@h:5000", "mysql+pymysql://u:p@h/db", "./mlruns"))
@example(",http://m\ne:pw@h:5000")
@example("x://me:p w@h")
def test_stores(uri: str) -> None:
    found = attempt(store_uri, uri, "/logs")
    if isinstance(found, UserError):
        assert redacted_text(str(found)) == str(found)


@times(2)
@given(st.lists(words("--format=json", "--era=0.x", "--hosts=a:1=b:1", "nothing.py", "-m", "-c")))
@example(["--format=xml", "nothing.py"])
def test_options_of_commands(argv: list[str]) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        for command in (run.parser().parse_args, check.main):
            with contextlib.suppress(SystemExit):  # After --help.
                attempt(command, [word for word in argv if not Path(word).exists()])


@given(st.lists(words("--job_name=ps", "--sync", "true", "-sy", "--", "--unknown=1"), max_size=5))
def test_flags_of_scripts(argv: list[str]) -> None:
    own = flags.FlagValues()
    flags.DEFINE_string("job_name", "", "ps", flag_values=own)
    flags.DEFINE_bool("sync", False, "all together", flag_values=own)
    found = attempt(script_flags.as_before, ["script.py", *argv], own)
    assert found[0] == "script.py"
