"""Habits of old scripts around tf.contrib, one a function; runs those of other files as well."""

import collections
import os
import sys
import tempfile
import traceback

import head_habits
import learn_habits
import numpy as np
import optimizer_habits
import package_habits
import sequence_habits
import tensorflow as tf
import tensorflow.contrib.slim as slim
import training_habits
from tensorflow.contrib import layers, rnn
from tensorflow.contrib.framework import arg_scope
from tensorflow.contrib.session_bundle import exporter

_OTHERS = (
    *(head_habits, learn_habits, optimizer_habits),
    *(package_habits, sequence_habits, training_habits),
)
RANDOM = np.random.RandomState(0)
X = RANDOM.rand(120, 4)
Y = (X[:, 0] > 0.5).astype(np.int64)


def run(*fetches, **options):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(tf.tables_initializer())
        for _ in range(options.get("steps", 1)):
            values = session.run(fetches, options.get("feed"))
    return values


def tf_layers():
    image = tf.placeholder(tf.float32, [None, 8, 8, 1])
    net = tf.layers.conv2d(image, 4, [3, 3], padding="same", activation=tf.nn.relu, name="conv")
    net = tf.layers.batch_normalization(net, training=True)
    net = tf.layers.max_pooling2d(net, [2, 2], 2)
    net = tf.layers.dropout(tf.layers.flatten(net), 0.4, training=True)
    logits = tf.layers.dense(net, 2, kernel_regularizer=layers.l2_regularizer(0.1))
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2
    assert len(tf.losses.get_regularization_losses()) == 1
    (value,) = run(logits, feed={image: np.ones([2, 8, 8, 1])})
    assert value.shape == (2, 2)


def rnn_cells():
    from tensorflow.models.rnn import rnn  # As until 0.9.

    assert rnn.dynamic_rnn is tf.nn.dynamic_rnn
    cell = tf.nn.rnn_cell.BasicLSTMCell(4, forget_bias=0.0, input_size=4, state_is_tuple=True)
    cell = tf.nn.rnn_cell.DropoutWrapper(cell, output_keep_prob=tf.constant(0.5))
    cell = tf.nn.rnn_cell.MultiRNNCell([cell] * 2, state_is_tuple=True)
    inputs = tf.ones([3, 5, 4])
    state = cell.zero_state(3, tf.float32)
    assert isinstance(state[0], tf.nn.rnn_cell.LSTMStateTuple)
    with tf.variable_scope("RNN"):
        for time in range(5):
            if time > 0:
                tf.get_variable_scope().reuse_variables()
            output, state = cell(inputs[:, time, :], state)
    assert len(tf.trainable_variables()) == 4, tf.trainable_variables()  # A layer, a cell.
    assert run(output)[0].shape == (3, 4)


def contrib_rnn():
    steps = tf.unstack(tf.ones([3, 5, 4]), 5, 1)
    outputs, _ = rnn.static_rnn(rnn.BasicLSTMCell(6), steps, dtype=tf.float32)
    both, _, _ = rnn.static_bidirectional_rnn(
        rnn.GRUCell(2), rnn.LSTMBlockCell(3), steps, dtype=tf.float32
    )
    deep, _, _ = rnn.stack_bidirectional_dynamic_rnn(
        [rnn.GRUCell(2)], [rnn.GRUCell(2)], tf.ones([3, 5, 4]), dtype=tf.float32
    )
    wrapped = rnn.OutputProjectionWrapper(rnn.BasicRNNCell(4), 7)
    projected, _ = tf.nn.dynamic_rnn(wrapped, tf.ones([3, 5, 4]), dtype=tf.float32)
    shapes = [value.shape for value in run(outputs[-1], both[-1], deep, projected)]
    assert shapes == [(3, 6), (3, 5), (3, 5, 4), (3, 5, 7)], shapes


def own_cell():
    class Cell(tf.nn.rnn_cell.RNNCell):
        def __init__(self, units):
            self._units = units

        @property
        def state_size(self):
            return self._units

        @property
        def output_size(self):
            return self._units

        def __call__(self, inputs, state, scope=None):
            with tf.variable_scope(scope or type(self).__name__):
                output = tf.tanh(tf.nn.rnn_cell._linear([inputs, state], self._units, True))
            return output, output

    assert isinstance(tf.nn.rnn_cell.GRUCell(2), tf.nn.rnn_cell.RNNCell)
    assert not isinstance(tf.nn.rnn_cell.GRUCell(2), Cell)
    outputs, _ = tf.nn.dynamic_rnn(Cell(3), tf.ones([2, 5, 4]), dtype=tf.float32)
    assert run(outputs)[0].shape == (2, 5, 3)


def seq2seq():
    cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(4)] * 2)
    symbols = [tf.constant([1, 2]) for _ in range(3)]
    weights = [tf.ones([2]) for _ in range(3)]

    def model(encoder, decoder):
        return tf.nn.seq2seq.embedding_attention_seq2seq(encoder, decoder, cell, 5, 5, 4)

    _, losses = tf.nn.seq2seq.model_with_buckets(
        symbols, symbols, symbols, weights, [(2, 2), (3, 3)], model
    )
    train = tf.train.AdamOptimizer(0.1).minimize(losses[1])
    first = run(losses[1], train)[0]
    assert run(losses[1], train, steps=20)[0] < first
    fed, _ = tf.contrib.legacy_seq2seq.embedding_rnn_seq2seq(
        symbols, symbols, tf.contrib.rnn.GRUCell(4), 5, 5, 4, feed_previous=tf.constant(True)
    )
    logits = [tf.constant([[0.0, 2.0], [1.0, 0.0]])]
    by_example = tf.nn.seq2seq.sequence_loss_by_example(
        logits, [tf.constant([1, 1])], [tf.constant([1.0, 0.5])]
    )
    mean = tf.contrib.seq2seq.sequence_loss(
        tf.stack(logits, 1), tf.constant([[1], [1]]), tf.constant([[1.0], [0.5]])
    )
    _, examples, value = run(fed, by_example, mean)
    np.testing.assert_allclose(examples, [0.126928, 1.313262], rtol=1e-4)
    np.testing.assert_allclose(value, (0.126928 + 0.5 * 1.313262) / 1.5, rtol=1e-4)


def contrib_layers():
    inputs = tf.placeholder(tf.float32, [None, 8, 8, 1])
    with arg_scope([layers.conv2d], weights_regularizer=layers.l1_regularizer(0.1)):
        net = layers.conv2d(inputs, 4, [3, 3], normalizer_fn=layers.batch_norm)
    net = layers.flatten(layers.max_pool2d(net, [2, 2]))
    net = layers.fully_connected(
        net, 3, activation_fn=None, weights_initializer=layers.xavier_initializer()
    )
    tf.get_variable("v", [2, 2], initializer=layers.variance_scaling_initializer())
    layers.summarize_tensors([net])
    step = tf.contrib.framework.get_or_create_global_step()
    assert tf.contrib.framework.get_global_step() is step
    loss = tf.reduce_mean(tf.square(net))
    train = layers.optimize_loss(loss, step, learning_rate=0.1, optimizer="Adam")
    assert np.isfinite(run(train, feed={inputs: np.ones([2, 8, 8, 1])})[0])
    assert tf.contrib.framework.get_variables("Conv")
    local = tf.contrib.framework.local_variable(1.0, name="mine")
    assert local in tf.local_variables()
    assert layers.embed_sequence(tf.constant([[1, 2]]), 5, 3).shape.as_list() == [1, 2, 3]


def feature_columns():
    colour = layers.sparse_column_with_keys("colour", ["red", "blue"])
    place = layers.sparse_column_with_hash_bucket("place", 10)
    age = layers.real_valued_column("age")
    buckets = layers.bucketized_column(age, [18, 30])
    crossed = layers.crossed_column([place, buckets], 20)
    deep = [layers.embedding_column(place, 3), layers.one_hot_column(colour), age]
    features = {
        "colour": tf.SparseTensor(indices=[[0, 0], [1, 0]], values=["red", "no"], shape=[2, 1]),
        "place": tf.constant([["x"], ["y"]]),
        "age": tf.constant([17, 40]),
    }
    dense = layers.input_from_feature_columns(features, deep)
    output, _, _ = layers.weighted_sum_from_feature_columns(features, [crossed, buckets], 1)
    spec = layers.create_feature_spec_for_parsing([age, place])
    assert sorted(spec) == ["age", "place"]
    assert [value.shape for value in run(dense, output)] == [(2, 6), (2, 1)]


def slim_nets():
    from tensorflow.contrib.slim.nets import resnet_v1
    from tensorflow.contrib.slim.python.slim.nets import inception

    assert inception.inception_v3
    with slim.arg_scope(resnet_v1.resnet_arg_scope()):
        blocks = [resnet_v1.resnet_v1_block("block1", base_depth=2, num_units=1, stride=2)]
        net, _ = resnet_v1.resnet_v1(tf.ones([1, 32, 32, 3]), blocks, num_classes=3)
    assert run(net)[0].reshape(-1).shape == (3,)


def slim_learning():
    logits = slim.fully_connected(tf.constant(X, tf.float32), 2, scope="fc")
    slim.losses.softmax_cross_entropy(logits, tf.one_hot(Y, 2))
    train = slim.learning.create_train_op(
        slim.losses.get_total_loss(), tf.train.GradientDescentOptimizer(0.1)
    )
    folder = tempfile.mkdtemp()
    loss = slim.learning.train(train, folder, number_of_steps=3, save_summaries_secs=0)
    assert np.isfinite(loss) and tf.train.latest_checkpoint(folder)
    tf.reset_default_graph()
    logits = slim.fully_connected(tf.constant(X, tf.float32), 2, scope="fc")
    names, updates = slim.metrics.aggregate_metric_map(
        {"accuracy": slim.metrics.streaming_accuracy(tf.argmax(logits, 1), Y)}
    )
    slim.get_or_create_global_step()
    value = slim.evaluation.evaluate_once(
        "",
        tf.train.latest_checkpoint(folder),
        folder,
        eval_op=list(updates.values()),
        final_op=names["accuracy"],
    )
    assert 0 <= value <= 1


def metrics():
    predictions = tf.constant([0.1, 0.8, 0.6])
    auc, update = tf.contrib.metrics.streaming_auc(predictions, tf.constant([0, 1, 1]))
    accuracy = tf.contrib.metrics.accuracy(tf.constant([1, 1]), tf.constant([1, 0]))
    loss = tf.contrib.losses.mean_squared_error(predictions, tf.constant([0.1, 0.8, 0.6]))
    np.testing.assert_allclose(run(update, accuracy, loss), [1.0, 0.5, 0.0], atol=1e-4)
    del auc


def training():
    hparams = tf.contrib.training.HParams(rate=0.1, units=[1, 2], name="a", deep=True, unset=None)
    hparams.parse("rate=1,units=[3,4,5],name=b,deep=false")
    hparams.parse("units=[3,9,5]").override_from_dict({"rate": 2})
    assert hparams.values() == {
        "rate": 2.0,
        "units": [3, 9, 5],
        "name": "b",
        "deep": False,
        "unset": None,
    }
    assert "rate" in hparams and hparams.get("none", 3) == 3 and '"name": "b"' in hparams.to_json()
    strategy = tf.contrib.training.GreedyLoadBalancingStrategy(
        2, tf.contrib.training.byte_size_load_fn
    )
    with tf.device(tf.train.replica_device_setter(ps_tasks=2, ps_strategy=strategy)):
        names = [tf.Variable(tf.zeros([size])).device for size in (8, 2, 2)]
    assert [name[-1] for name in names] == ["0", "1", "1"], names


def staging_and_lookup():
    area = tf.contrib.staging.StagingArea([tf.float32], [[2]])
    put = area.put([tf.ones([2])])
    with tf.control_dependencies([put]):
        got = area.get()
    table = tf.contrib.lookup.index_table_from_tensor(mapping=["a", "b"], num_oov_buckets=1)
    fixed = tf.contrib.lookup.HashTable(
        tf.contrib.lookup.KeyValueTensorInitializer(["a"], tf.constant([7], tf.int64)), -1
    )
    dataset = tf.data.Dataset.range(5).apply(tf.contrib.data.batch_and_drop_remainder(2))
    item = dataset.apply(tf.contrib.data.shuffle_and_repeat(2)).make_one_shot_iterator().get_next()
    values = run(got, table.lookup(tf.constant(["b"])), fixed.lookup(tf.constant(["z"])), item)
    assert values[1][0] == 1 and values[2][0] == -1 and values[3].shape == (2,)
    assert tf.contrib.util.make_tensor_proto([1]).dtype == tf.int32.as_datatype_enum


def session_bundle():
    x = tf.placeholder(tf.float32, [None], name="x")
    weight = tf.Variable(2.0)
    y = x * weight
    step = tf.Variable(7, trainable=False)
    folder = tempfile.mkdtemp()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        export = exporter.Exporter(tf.train.Saver())
        export.init(
            session.graph.as_graph_def(),
            named_graph_signatures={
                "inputs": exporter.generic_signature({"x": x}),
                "outputs": exporter.generic_signature({"y": y}),
            },
        )
        export.export(folder, step, session)
    exported = os.path.join(folder, "00000007")
    if not os.path.exists(os.path.join(exported, "export.meta")):  # Of TensorFlow's own exporter.
        predict = tf.contrib.predictor.from_saved_model(exported)
        np.testing.assert_allclose(predict({"x": [1.0, 2.0]})["y"], [2, 4])


HABITS = collections.OrderedDict(
    (name, value)
    for module in (sys.modules[__name__], *_OTHERS)
    for name, value in sorted(vars(module).items())
    if getattr(value, "__module__", "") == module.__name__ and name != "run" and name[0] != "_"
)

if __name__ == "__main__":
    for name in sys.argv[1:] or HABITS:
        tf.reset_default_graph()
        try:
            HABITS[name]()
        except Exception:
            print("FAIL", name, traceback.format_exc().replace("\n", "\\n"), flush=True)
        else:
            print("PASS", name, flush=True)
