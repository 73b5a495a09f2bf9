"""Habits of scripts around sequences, and internal names; run by `contrib_habits.py`.

The numbers are those of TensorFlow 1.15, where its own `tf.contrib` serves.
"""

import tempfile

import numpy as np
import tensorflow as tf

SEQ = tf.contrib.seq2seq
BATCH, TIME, UNITS, SYMBOLS = 3, 5, 4, 7


def _waves(shape, dtype=tf.float32, partition_info=None, **_):
    """Initializes variables with the same numbers in all releases."""
    shape = [int(size) for size in shape]
    count = int(np.prod(shape))
    return tf.constant(0.5 * np.cos(1.7 * np.arange(count) + len(shape)).reshape(shape), dtype)


def _decoder(mechanism, beams=1, helper=None, **options):
    """Returns what a decoder with attention found, and its last state."""
    random = np.random.RandomState(5)
    memory, *state = (
        tf.constant(random.randn(*shape), tf.float32)
        for shape in ([BATCH, TIME, UNITS], [BATCH, UNITS], [BATCH, UNITS])
    )
    lengths, state = tf.constant([5, 3, 4]), tf.nn.rnn_cell.LSTMStateTuple(*state)
    if beams > 1:
        memory, lengths, state = SEQ.tile_batch((memory, lengths, state), beams)
    embedding = tf.get_variable("embedding", [SYMBOLS, 6])
    cell = SEQ.AttentionWrapper(
        tf.nn.rnn_cell.LSTMCell(UNITS), mechanism(memory, lengths), 3, beams == 1
    )
    state = cell.zero_state(BATCH * beams, tf.float32).clone(cell_state=state)
    layer, start = tf.layers.Dense(SYMBOLS, use_bias=False), tf.fill([BATCH], 1)
    if beams > 1:
        found = SEQ.BeamSearchDecoder(cell, embedding, start, 2, state, beams, layer, **options)
    else:
        inputs = tf.nn.embedding_lookup(embedding, tf.constant(random.randint(0, 7, [BATCH, TIME])))
        found = SEQ.BasicDecoder(cell, helper(embedding, start, inputs), state, layer)
    return SEQ.dynamic_decode(found, maximum_iterations=6, impute_finished=beams == 1)


def _numbers(*fetches):
    """Returns a number for each fetch."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = [np.ravel(value).astype(float) for value in session.run(fetches)]
    return [np.cos(np.arange(len(value))).dot(value) for value in values]


def trained_with_attention():
    def trained(embedding, start, inputs):
        return SEQ.TrainingHelper(inputs, tf.constant([5, 2, 3]))

    found = []
    for mechanism in (
        lambda memory, lengths: SEQ.LuongAttention(UNITS, memory, lengths, scale=True),
        lambda memory, lengths: SEQ.BahdanauAttention(UNITS, memory, lengths, normalize=True),
        lambda memory, lengths: SEQ.LuongMonotonicAttention(UNITS, memory, lengths),
    ):
        tf.reset_default_graph()
        with tf.variable_scope("model", initializer=_waves):
            outputs, state, lengths = _decoder(mechanism, helper=trained)
        weights = tf.sequence_mask(lengths, dtype=tf.float32)
        loss = SEQ.sequence_loss(outputs.rnn_output, tf.ones_like(outputs.sample_id), weights)
        variables = tf.trainable_variables()
        names = sorted(variable.op.name for variable in variables)
        changes = [tf.convert_to_tensor(each) for each in tf.gradients(loss, variables)]
        sizes = [tf.norm(change) for change in changes]
        found += _numbers(loss, outputs.rnn_output, state.alignment_history.stack(), sizes)
    assert "model/decoder/attention_wrapper/luong_monotonic_attention/attention_score_bias" in names
    golden = [
        *(1.90819, 0.136928, 0.292495, 0.240348),
        *(1.911892, 0.23133, 0.035158, -0.29461),
        *(1.891283, 0.362989, 0.316059, 0.167598),
    ]
    np.testing.assert_allclose(found, golden, rtol=1e-4)


def decoded_with_attention():
    def greedy(embedding, start, inputs):
        return SEQ.GreedyEmbeddingHelper(embedding, start, 2)

    def attention(memory, lengths):
        return SEQ.BahdanauAttention(UNITS, memory, lengths)

    with tf.variable_scope("greedy", initializer=_waves):
        outputs, _, lengths = _decoder(attention, helper=greedy)
    with tf.variable_scope("beam", initializer=_waves):
        found, state, _ = _decoder(
            attention, 3, length_penalty_weight=0.6, coverage_penalty_weight=0.2
        )
    values = _numbers(
        outputs.rnn_output,
        lengths,
        found.predicted_ids,
        found.beam_search_decoder_output.scores,
        state.lengths,
    )
    golden = [0.534953, 8.40952, -2.711322, 12.18917, 7.996524]
    np.testing.assert_allclose(values, golden, rtol=1e-4)


def layer_norm_cell():
    values = tf.constant(np.random.RandomState(3).randn(2, TIME, 3), tf.float32)
    golden = [[-0.898688, -1.183376, 1.603313], [-0.158187, -0.426727, 1.878681]]
    for number, options in enumerate(({}, {"layer_norm": False, "forget_bias": 0.0})):
        with tf.variable_scope(f"rnn_{number}", initializer=_waves):
            cell = tf.contrib.rnn.LayerNormBasicLSTMCell(UNITS, **options)
            outputs, state = tf.nn.dynamic_rnn(cell, values, [5, 3], dtype=tf.float32)
        variables = tf.trainable_variables(f"rnn_{number}")
        changes = tf.gradients(tf.reduce_sum(tf.square(outputs)), variables)
        found = _numbers(outputs, state.c, [tf.norm(change) for change in changes])
        np.testing.assert_allclose(found, golden[number], rtol=1e-4)
    name = "rnn_0/rnn/layer_norm_basic_lstm_cell/transform/gamma"
    assert name in [variable.op.name for variable in tf.trainable_variables()]


def fused_cells():
    rnn = tf.contrib.rnn
    values = tf.constant(np.random.RandomState(3).randn(TIME, 2, 3), tf.float32)

    def fused(reversed_, lengths, **options):
        cell = rnn.LSTMBlockFusedCell(UNITS, **options)
        cell = rnn.TimeReversedFusedRNN(cell) if reversed_ else cell
        return cell(values, dtype=tf.float32, sequence_length=lengths)

    def by_step(cell, is_dynamic, lengths):
        return rnn.FusedRNNCellAdaptor(cell, is_dynamic)(values, None, tf.float32, lengths)

    ways = [
        lambda: fused(False, None),
        lambda: fused(True, [5, 0], use_peephole=True, cell_clip=0.2, forget_bias=0.0),
        lambda: by_step(rnn.LSTMBlockCell(UNITS), True, [5, 3]),
        lambda: by_step(rnn.LSTMBlockCell(UNITS, 0.5, 0.2, True), False, None),
        lambda: by_step(rnn.GRUBlockCell(UNITS), True, None),
    ]
    found = []
    for number, way in enumerate(ways):
        with tf.variable_scope(f"way_{number}", initializer=_waves):
            outputs, state = way()
        variables = tf.trainable_variables(f"way_{number}")
        changes = tf.gradients(tf.reduce_sum(tf.square(outputs)), variables)
        found.append(_numbers(outputs, state, [tf.norm(change) for change in changes]))
    golden = [
        [-0.699091, -0.305531, 2.059189],
        [-0.137654, -0.41945, 0.493556],
        [-0.469994, -0.266819, 2.009989],
        [-0.541298, -0.013517, 0.945976],
        [0.380964, -0.240798, -1.691865],
    ]
    np.testing.assert_allclose(found, golden, rtol=1e-4)
    names = [variable.op.name for variable in tf.trainable_variables()]
    assert names[:2] == ["way_0/lstm_fused_cell/kernel", "way_0/lstm_fused_cell/bias"], names
    assert "way_3/rnn/lstm_cell/w_f_diag" in names and "way_4/rnn/gru_cell/w_ru" in names, names


def convolutions_in_an_lstm():
    rnn = tf.contrib.rnn
    random = np.random.RandomState(3)
    flat = tf.constant(random.randn(2, TIME, 6, 2), tf.float32)
    images = tf.constant(random.randn(2, TIME, 6, 5, 2), tf.float32)
    with tf.variable_scope("lstm", initializer=_waves):
        cell = rnn.Conv2DLSTMCell(
            input_shape=[6, 5, 2], output_channels=3, kernel_shape=[3, 3], use_bias=True
        )
        outputs, state = tf.nn.dynamic_rnn(cell, images, [5, 3], dtype=tf.float32)
        series = rnn.ConvLSTMCell(1, [6, 2], 3, [3], use_bias=False)
        others, _ = tf.nn.dynamic_rnn(series, flat, dtype=tf.float32)
    variables = tf.trainable_variables("lstm")
    loss = tf.reduce_sum(tf.square(outputs)) + tf.reduce_sum(tf.square(others))
    changes = [tf.norm(change) for change in tf.gradients(loss, variables)]
    found = _numbers(outputs, state.c, others, changes)
    np.testing.assert_allclose(found, [-0.704379, 3.655827, 0.367401, 20.587299], rtol=1e-4)
    names = [variable.op.name for variable in variables]
    assert names[:2] == [f"lstm/rnn/conv_2d_lstm_cell/{name}" for name in ("kernel", "biases")]


def internal_names():
    from tensorflow.contrib import summary
    from tensorflow.core.util import event_pb2
    from tensorflow.python import pywrap_tensorflow
    from tensorflow.python.estimator.model_fn import ModeKeys
    from tensorflow.python.framework import graph_util
    from tensorflow.python.util import nest

    assert (ModeKeys.TRAIN, nest.is_sequence([1]), nest.is_sequence("a")) == ("train", True, False)
    assert summary.all_summary_ops() == []
    folder = tempfile.mkdtemp()
    weights = tf.get_variable("weights", initializer=[1.0, 2.0])
    tf.add(weights, 1.0, name="sum")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, folder + "/model")
        graph = session.graph.as_graph_def()
        frozen = graph_util.convert_variables_to_constants(session, graph, ["sum"])
    reader = pywrap_tensorflow.NewCheckpointReader(path)
    assert reader.get_tensor("weights").tolist() == [1, 2]
    writer = pywrap_tensorflow.EventsWriter(tf.compat.as_bytes(folder + "/events"))
    writer.WriteEvent(event_pb2.Event(step=3))
    writer.Flush()
    name = writer.FileName()
    assert [event.step for event in tf.train.summary_iterator(name)] == [0, 3]
    writer.Close()
    with tf.Graph().as_default(), tf.Session() as session:
        (result,) = tf.import_graph_def(frozen, return_elements=["sum:0"])
        assert session.run(result).tolist() == [2, 3]
