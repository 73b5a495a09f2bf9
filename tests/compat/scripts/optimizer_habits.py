"""Habits of scripts around tf.contrib.opt, one a function."""

import importlib.util

import numpy as np
import tensorflow as tf

SGD = tf.train.GradientDescentOptimizer
# Of TensorFlow 1.15.5.
# fmt: off
AROUND = [
    -0.083511, 0.121341, 0.388911, 0.0935309, 0.269211, -0.0913071, 0.504513, 0.772462, -0.02444,
    1.01394,
]
ADAPTIVE = [
    0.0327621, 0.230338, 1.08577, 0.196453, 0.940003, 0.0103082, 0.313235, 0.882344, 0.0304529,
    0.845603, -0.0037894, -2.56518, 0.502385, -0.295882, 2.94584, 0.0166449, -0.597966, 0.699506,
    -0.198371, 1.90956, -0.000176381, 0.24567, 0.900979, 0.0845613, 0.73902, -0.108449, 0.562998,
    0.550638, -0.244796, 0.818666, 0.0419563, 0.335211, 0.779869, -0.0266148, 0.783392, -0.104695,
    0.533501, 0.623598, -0.151024, 0.874159,
]
# fmt: on


def _same(values, golden):
    """Compares numbers with those of TensorFlow 1.15.5."""
    values = np.concatenate([np.ravel(value).astype(float) for value in values])
    np.testing.assert_allclose(values, golden, rtol=2e-5, atol=1e-6, err_msg=str(list(values)))


def _trained(make, steps=4, **options):
    """Returns the variables after some steps, of a table of which not all rows are read."""
    tf.reset_default_graph()
    table = tf.get_variable("table", initializer=np.arange(8, dtype="f").reshape(4, 2) / 7 - 0.4)
    weight = tf.get_variable("weight", initializer=np.float32([[0.5], [-0.3]]))
    rows = tf.nn.embedding_lookup(table, [1, 3, 1])
    loss = tf.reduce_mean(tf.square(tf.matmul(rows, weight) - [[1.0], [2.0], [-1.0]]))
    optimizer = make(table, weight)
    train = optimizer.apply_gradients(optimizer.compute_gradients(loss), **options)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(train)
        return session.run([table[1, 0], table[3, 1], weight, tf.reduce_sum(table)])


def _dense(optimizer):
    """Returns the optimizer with no gradient by rows."""
    compute = optimizer.compute_gradients
    optimizer.compute_gradients = lambda loss: [
        (tf.convert_to_tensor(gradient), variable) for gradient, variable in compute(loss)
    ]
    return optimizer


def optimizers_of_contrib_that_adapt():
    opt = tf.contrib.opt
    values = [
        _trained(lambda *_: opt.NadamOptimizer(0.1)),
        _trained(lambda *_: opt.AdaMaxOptimizer(0.1)),
        _trained(lambda *_: opt.LARSOptimizer(2.0, skip_list=["table"])),
        _trained(lambda *_: opt.LARSOptimizer(0.5, 0.8, 0.01, 0.1, skip_list=["table"])),
        _trained(lambda *_: tf.contrib.optimizer_v2.AdamOptimizer(0.1)),
        _trained(lambda *_: tf.contrib.optimizer_v2.RMSPropOptimizer(0.01, 0.8, 0.1, 0.2)),
        _trained(lambda *_: opt.AdamGSOptimizer(7, 0.1)),
        _trained(lambda *_: _dense(opt.GGTOptimizer(0.05, window=3, svd_eps=0.01))),
    ]
    _same([np.concatenate([np.ravel(each) for each in one]) for one in values], ADAPTIVE)


def optimizers_of_contrib_around_others():
    opt = tf.contrib.opt

    def clipping(table, weight):
        return opt.VariableClippingOptimizer(SGD(0.3), {table: [1], weight: [0]}, 0.4)

    def clipped(table, weight):
        inner = _dense(SGD(0.5))
        compute = inner.compute_gradients
        inner.compute_gradients = lambda loss: opt.clip_gradients_by_global_norm(
            compute(loss), 0.25
        )[0]
        return inner

    values = [_trained(clipping), _trained(clipped)]
    _same([np.concatenate([np.ravel(each) for each in one]) for one in values], AROUND)


def stale_gradients_are_left_out():
    for passed, expected in ((2, 0.4), (3, 1.0)):
        tf.reset_default_graph()
        step = tf.train.get_or_create_global_step()
        weight = tf.get_variable("w", initializer=1.0)
        optimizer = tf.contrib.opt.DropStaleGradientOptimizer(SGD(0.1), staleness=2)
        pairs = optimizer.compute_gradients(tf.square(weight) * 3)
        with tf.control_dependencies([optimizer._local_step]):  # Other workers update.
            others = tf.assign_add(step, passed)
        with tf.control_dependencies([others]):
            pairs = [(tf.identity(gradient), variable) for gradient, variable in pairs]
        train = optimizer.apply_gradients(pairs, global_step=step)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            left_out = session.run(train)
            values = session.run([weight, step, tf.global_variables("stale_counter")[0]])
        is_late = float(passed > 2)
        assert left_out == is_late
        np.testing.assert_allclose(values, [expected, passed + 1 - is_late, is_late], rtol=1e-6)


def scipy_minimizes():
    if importlib.util.find_spec("scipy") is None:
        return  # Which TensorFlow does not install.
    interface = tf.contrib.opt.ScipyOptimizerInterface
    vector = tf.get_variable("vector", initializer=np.float32([7.0, 7.0, -3.0]))
    scale = tf.placeholder(tf.float32, [])
    loss = scale * tf.reduce_sum(tf.square(vector)) + tf.reduce_sum(vector)
    bounds = {vector: ([1, 2, -np.inf], np.inf)}
    called = []
    makers = [
        (interface(loss, options={"maxiter": 100}), [-0.5, -0.5, -0.5]),
        (interface(loss, var_to_bounds=bounds), [1, 2, -0.5]),
        (
            interface(
                loss,
                equalities=[vector[1] - 1.0],
                inequalities=[vector[0] - 1.0],
                method="SLSQP",
            ),
            [1, 1, -0.5],
        ),
    ]
    for optimizer, expected in makers:
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            optimizer.minimize(
                session,
                feed_dict={scale: 1.0},
                fetches=[loss],
                step_callback=called.append,
                loss_callback=called.append,
            )
            np.testing.assert_allclose(session.run(vector), expected, atol=1e-4)
    assert np.shape(called[0]) == () and (3,) in map(np.shape, called)
    try:
        interface(loss, callback=print).minimize(session)
    except (ValueError, RuntimeError) as error:
        assert "callback" in str(error) or "closed" in str(error)
