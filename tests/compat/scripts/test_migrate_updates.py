"""`python -m compat migrate --to=experiment` of the ways in which scripts update variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import UserError
from compat.scripts.migrating.experiment import writing
from compat.scripts.migrating.steps import rewriting
from tests.compat.scripts.conftest import assert_it_is_equal_and_trains, update_script

pytest.importorskip("asttokens")
pytest.importorskip("fissix")
pytestmark = pytest.mark.once
FLAGS = """
flags.DEFINE_boolean("sync", False, "Whether replicas are synchronous.")
flags.DEFINE_boolean("adam", True, "Adam, or plain descent.")
flags.DEFINE_float("learning_rate", 0.05, "Learning rate.")
flags.DEFINE_float("limit", 0.1, "Gradients are clipped to this.")
FLAGS = flags.FLAGS
"""
# Lines of scripts that update variables, and lines of the methods that they become.
FORMS = {
    "clipped values": (
        """
gv = opt.compute_gradients(loss)
capped = [(tf.clip_by_value(g, -FLAGS.limit, FLAGS.limit), v) for g, v in gv if g is not None]
for g, v in capped:
    tf.summary.histogram(v.op.name, g)
train = opt.apply_gradients(capped, global_step=step)
""",
        ["    FLAGS = self.settings", "    gv = pairs", "    return capped"],
    ),
    "clipped in place": (
        """
gradients = opt.compute_gradients(loss)
for i, (g, v) in enumerate(gradients):
    if g is not None:
        gradients[i] = (tf.clip_by_norm(g, 0.1), v)
train = opt.apply_gradients(gradients)
""",
        ["    gradients = pairs", "            gradients[i] = (tf.clip_by_norm(g, 0.1), v)"],
    ),
    "clipped to a global norm": (
        """
tvars = tf.trainable_variables()
grads, _ = tf.clip_by_global_norm(tf.gradients(loss, tvars), 0.1)
train = opt.apply_gradients(
    zip(grads, tvars),
    global_step=step)
""",
        [
            "    tvars = [variable for _, variable in pairs]",
            "    grads, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], 0.1)",
            "    return zip(grads, tvars)",
        ],
    ),
    "scaled by what the loss has": (
        """
scale = tf.reduce_mean(x)
gv = [(g * scale, v) for g, v in opt.compute_gradients(loss, var_list=[w, b])]
train = opt.apply_gradients(gv, step)
""",
        [
            '    self.built = {"b": b, "scale": scale, "w": w}',
            "    pairs = [pair for pair in pairs if any(pair[1] is v for v in [w, b])]",
            "    gv = [(g * scale, v) for g, v in pairs]",
        ],
    ),
    "some variables by name": (
        """
chosen = [v for v in tf.trainable_variables() if v.name.startswith("w")]
grads = tf.gradients(loss, chosen, colocate_gradients_with_ops=True)
train = opt.apply_gradients(zip(grads, chosen))
""",
        [
            '    chosen = [v for v in tf.trainable_variables() if v.name.startswith("w")]',
            "    pairs = [pair for pair in pairs if any(pair[1] is v for v in chosen)]",
            "    return zip(grads, chosen)",
        ],
    ),
    "some variables in a block of its own": (
        """
with tf.name_scope("train"), tf.device("/cpu:0"):
    grads = [tf.clip_by_norm(g, 0.1) for g in tf.gradients(loss, [w, b])]
    train = opt.apply_gradients(zip(grads, [w, b]), global_step=step)
""",
        [
            '    b, w = self.built["b"], self.built["w"]',
            "    grads = [tf.clip_by_norm(g, 0.1) for g in [gradient for gradient, _ in pairs]]",
            "    return zip(grads, [variable for _, variable in pairs])",
        ],
    ),
    "some variables alone": (
        "train = opt.minimize(loss, step, var_list=[b], colocate_gradients_with_ops=True)",
        ['    b = self.built["b"]', "    return pairs"],
    ),
    "the same in both branches": (
        """
if FLAGS.sync:
    replicas = tf.train.SyncReplicasOptimizer(opt, replicas_to_aggregate=2)
    train = replicas.minimize(loss, global_step=step)
    tokens = replicas.get_init_tokens_op()
else:
    train = opt.minimize(loss, global_step=step)
""",
        ["    opt = tf.train.GradientDescentOptimizer(FLAGS.learning_rate)", "    return opt"],
    ),
    "another optimizer": (
        """
if FLAGS.adam:
    train = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
else:
    train = opt.minimize(loss, global_step=step)
""",
        ["    if FLAGS.adam:", "        return tf.train.AdamOptimizer(0.01)", "    else:"],
    ),
    "averages of its variables": (
        """
update = opt.minimize(loss, global_step=step)
ema = tf.train.ExponentialMovingAverage(0.5, step)
with tf.control_dependencies([update]):
    train = ema.apply(tf.trainable_variables())
""",
        [
            "def after_update(self, step, optimizer):",
            "    ema = tf.train.ExponentialMovingAverage(0.5, step)",
            "    return ema.apply(tf.trainable_variables())",
        ],
    ),
    "averages in a group": (
        """
rate = tf.train.exponential_decay(FLAGS.learning_rate, step, 5, 0.7)
update = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)
averages = tf.train.ExponentialMovingAverage(0.5).apply([w])
train = tf.group(update, averages)
""",
        [
            "    rate = tf.train.exponential_decay(FLAGS.learning_rate, step, 5, 0.7)",
            "    return rate",
            "    return tf.train.GradientDescentOptimizer(self.learning_rate(step))",
            '    w = self.built["w"]',
            "    return averages",
        ],
    ),
}

# Other ways to have the averages of `averages in a group`.
GROUPS = [
    "train = tf.group(opt.minimize(loss), averages)",
    "train = opt.minimize(loss)\ntrain = tf.group(train, averages)",
    "update = opt.minimize(loss)\nwith tf.control_dependencies([update, averages]):\n"
    "    train = tf.no_op()",
    "train = [opt.minimize(loss), averages]",
    "more = []\nmore.append(opt.minimize(loss))\nmore.append(averages)\ntrain = tf.group(*more)",
]


def written(form: str) -> str:
    text = update_script(FLAGS, form.replace(".op.name", ".name"), "compat.v1")
    return writing.migrate("old.py", text).text


@pytest.mark.parametrize("kind", FORMS)
def test_each_form_becomes_methods(kind: str) -> None:
    form, lines = FORMS[kind]
    made = written(form).partition("# compat ")[0]
    for line in lines:
        assert f"    {line}\n" in made, made
    assert "SyncReplicas" not in made


@pytest.mark.parametrize("group", GROUPS)
def test_averages_are_found_in_each_group(group: str) -> None:
    made = written(f"averages = tf.train.ExponentialMovingAverage(0.5).apply([w])\n{group}")
    assert "        return averages\n" in made, made


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMS)
def test_each_form_is_equal_and_trains_on_the_modern_runtime(kind: str, tmp_path: Path) -> None:
    text = update_script(FLAGS, FORMS[kind][0])
    assert_it_is_equal_and_trains(text, tmp_path, has_averages="averages" in kind)


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ("train = opt.minimize(loss * 2)", "what it minimizes has no name"),
        ("train = opt.minimize(loss, grad_loss=y)", "minimize\\(\\) has the argument grad_loss"),
        ("train = opt.minimize(loss)\nopt.minimize(loss)", "it calls minimize\\(\\) 2 times"),
        ("train = opt.apply_gradients(made_elsewhere())", "that it applies are not followed"),
        (
            "gv = opt.compute_gradients(loss)\ngv = [gv[0]]\ntrain = opt.apply_gradients(gv)",
            "it takes a gradient by its number",
        ),
        (
            "gv = opt.compute_gradients(loss) + opt.compute_gradients(loss)\n"
            "train = opt.apply_gradients(gv)",
            "it computes gradients in several places",
        ),
        (
            "if FLAGS.adam:\n    train = opt.minimize(loss)\nelse:\n    train = opt.minimize(y)",
            "it minimizes loss and y",
        ),
        (
            "if FLAGS.adam:\n    train = opt.minimize(loss)\nelif FLAGS.sync:\n"
            "    train = opt.minimize(loss)",
            "it calls minimize\\(\\) 2 times",
        ),
        (
            "train = tf.tuple([opt.minimize(loss)], control_inputs=[tf.no_op()])\n"
            "train = tf.stack(train)",
            "what runs with its update is not followed",
        ),
        (
            "update = opt.minimize(loss)\nema = tf.train.ExponentialMovingAverage(0.5)\n"
            "train = tf.group(update, ema.apply([w]))\ntf.summary.scalar('m', ema.average(w))",
            "it reads the moving averages of its variables",
        ),
    ],
)
def test_what_it_refuses(form: str, why: str) -> None:
    with pytest.raises(UserError, match=f"cannot become an Experiment, since .*{why}"):
        written(form)


def test_what_is_made_of_gradients_is_no_output() -> None:
    form = FORMS["clipped to a global norm"][0].replace("grads, _", "grads, norm")
    text = update_script(FLAGS, form, "compat.v1").replace("[train, loss]", "[train, loss, norm]")
    made = writing.migrate("old.py", text)
    ((_, remark),) = made.remarks
    assert remark.startswith("norm, which it fetches, is made of gradients")
    assert "        return loss\n" in made.text
    alone = "        session.run(norm, {x: batch, y: batch})\n"
    with pytest.raises(UserError, match="it runs norm, made of gradients, without its update"):
        writing.migrate("old.py", text + alone)


def test_a_flag_of_every_experiment_does_not_change_gradients() -> None:
    form = "loss = loss + FLAGS.weight_decay * tf.nn.l2_loss(w)\ntrain = opt.minimize(loss)"
    text = update_script(FLAGS.replace('"limit"', '"weight_decay"'), form, "compat.v1")
    made = writing.migrate("old.py", text).text
    assert "    def gradients(self, pairs):\n        return pairs  # " in made


def test_an_update_of_both_branches_is_returned_by_a_step() -> None:
    text = update_script(FLAGS, FORMS["another optimizer"][0], "compat.v1")
    made = rewriting.migrate("old.py", text)
    assert '"train": train,\n' in made.text
    assert not made.remarks
