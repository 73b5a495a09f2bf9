"""`python -m compat migrate --to=experiment` of averages that some tasks or runs alone keep."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from compat.errors import UserError
from compat.scripts.migrating.experiment import writing
from tests.compat.scripts.conftest import assert_it_is_equal_and_trains, update_script

pytest.importorskip("asttokens")
pytest.importorskip("fissix")
pytestmark = pytest.mark.once
FLAGS = """
flags.DEFINE_integer("task_index", 0, "Number of the task.")
flags.DEFINE_boolean("average", True, "Whether averages are kept.")
flags.DEFINE_float("learning_rate", 0.05, "Learning rate.")
FLAGS = flags.FLAGS
is_chief = (FLAGS.task_index == 0)
"""
# What waits for the update in a branch, and what waits for that.
FORMS = {
    "an operation after both": """
train = opt.minimize(loss, global_step=step)
if CONDITION:
    ema = tf.train.ExponentialMovingAverage(0.5, step)
    averages = ema.apply(tf.trainable_variables())
    # Both.
    with tf.control_dependencies([averages, train]):
        train = tf.no_op()
""",
    "a group in a branch": """
train = opt.minimize(loss, global_step=step)
ema = tf.train.ExponentialMovingAverage(0.5, step)
if CONDITION:
    with tf.control_dependencies([train]):
        train = tf.group(ema.apply([w]))
else:
    train = tf.group(train)
""",
    "an update in each branch": """
if CONDITION:
    update = opt.minimize(loss, global_step=step)
    with tf.control_dependencies([update]):
        train = tf.train.ExponentialMovingAverage(0.5, step).apply([w])
else:
    train = opt.minimize(loss, global_step=step)
""",
}
CHIEF = "what the chief alone ran with its updates, all workers run with theirs"


def migrated(form: str) -> Any:
    return writing.migrate("old.py", update_script(FLAGS, form, "compat.v1"))


@pytest.mark.parametrize("kind", FORMS)
def test_a_flag_chooses_what_follows_the_update(kind: str) -> None:
    made = migrated(FORMS[kind].replace("CONDITION", "FLAGS.average"))
    _, after = made.text.split("    def after_update(self, step, optimizer):\n")
    assert re.search(r"return tf.group\(\*\(\[.*\] if FLAGS.average else \[\]\)\)\n", after), after
    assert "no_op" not in after.partition("# compat ")[0]
    assert not made.remarks


@pytest.mark.parametrize("condition", ["is_chief", "FLAGS.task_index == 0"])
def test_what_the_chief_runs_all_workers_run(condition: str) -> None:
    made = migrated(FORMS["an operation after both"].replace("CONDITION", condition))
    assert "        return averages\n" in made.text
    assert "task_index" not in made.text.partition("# compat ")[0]
    assert [remark for _, remark in made.remarks] == [CHIEF]


def test_a_branch_without_an_update_is_refused() -> None:
    form = "train = opt.minimize(loss)\nif FLAGS.average:\n    train = tf.no_op()\n"
    with pytest.raises(UserError, match="it runs no update here"):
        migrated(form)


@pytest.mark.slow
@pytest.mark.parametrize("condition", ["is_chief", "FLAGS.average"])
@pytest.mark.parametrize("kind", FORMS)
def test_each_form_is_equal_and_keeps_averages_on_the_modern_runtime(
    kind: str, condition: str, tmp_path: Path
) -> None:
    form = FORMS[kind].replace("CONDITION", condition)
    assert_it_is_equal_and_trains(update_script(FLAGS, form), tmp_path, has_averages=True)
