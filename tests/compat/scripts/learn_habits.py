"""Habits of scripts around estimators, tf.contrib.learn, features and Keras, one a function."""

import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.contrib import layers, learn

RANDOM = np.random.RandomState(0)
X = RANDOM.rand(120, 4)
Y = (X[:, 0] > 0.5).astype(np.int64)


def estimator():
    def model_fn(features, labels, mode, params):
        logits = tf.layers.dense(features["x"], 2)
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions={"classes": tf.argmax(logits, 1)})
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.AdamOptimizer(params["rate"]).minimize(
            loss, global_step=tf.train.get_global_step()
        )
        accuracy = tf.metrics.accuracy(labels, tf.argmax(logits, 1))
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, train_op=train, eval_metric_ops={"accuracy": accuracy}
        )

    inputs = tf.estimator.inputs.numpy_input_fn
    config = tf.estimator.RunConfig(model_dir=tempfile.mkdtemp(), save_checkpoints_steps=50)
    model = tf.estimator.Estimator(model_fn, config=config, params={"rate": 0.1})
    x = {"x": X.astype(np.float32)}
    tf.estimator.train_and_evaluate(
        model,
        tf.estimator.TrainSpec(inputs(x, Y, num_epochs=None, shuffle=True), max_steps=100),
        tf.estimator.EvalSpec(inputs(x, Y, shuffle=False), steps=None, start_delay_secs=0),
    )
    assert model.evaluate(inputs(x, Y, shuffle=False))["accuracy"] > 0.8
    assert len(list(model.predict(inputs(x, shuffle=False)))) == 120
    for canned in (
        tf.estimator.DNNClassifier([8], [tf.feature_column.numeric_column("x", [4])]),
        tf.estimator.LinearClassifier([tf.feature_column.numeric_column("x", [4])]),
    ):
        canned.train(inputs(x, Y, shuffle=True), steps=2)


def linear_of_cells():
    from tensorflow.contrib.rnn.python.ops.core_rnn_cell import _Linear, _linear
    from tensorflow.python.ops import rnn_cell_impl

    with tf.Graph().as_default(), tf.variable_scope("gate"):
        inputs = [tf.ones([2, 3]), tf.ones([2, 4])]
        linear = _Linear(inputs, 5, True, bias_initializer=tf.constant_initializer(1.0))
        assert linear(inputs).shape == linear(inputs).shape == (2, 5)
        with tf.variable_scope("next", partitioner=tf.fixed_size_partitioner(2)):
            assert _linear(inputs, 4, True).shape == (2, 4)
        names = [variable.op.name for variable in tf.global_variables()]
    parts = ["gate/next/kernel/part_0", "gate/next/kernel/part_1", "gate/next/bias"]
    assert names == ["gate/kernel", "gate/bias", *parts]
    assert isinstance(tf.nn.rnn_cell.GRUCell(2), rnn_cell_impl.LayerRNNCell)
    assert tf.contrib.rnn.transpose_batch_time(tf.zeros([2, 3, 4])).shape == (3, 2, 4)


def tables_of_embeddings():
    """A lookup reads rows: a table that is updated by rows is not copied as a whole."""
    places, words = tf.placeholder(tf.int64, [None, 2]), tf.placeholder(tf.int64, [None])
    ids = tf.SparseTensor(places, words, [2, 2])
    options = {"use_resource": True, "partitioner": tf.fixed_size_partitioner(1)}
    table = tf.get_variable("table", [50, 4], **options)
    rows = tf.nn.safe_embedding_lookup_sparse(table, ids, None, combiner="mean")
    train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(rows**2))
    options, found = tf.RunOptions(output_partition_graphs=True), tf.RunMetadata()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        fed = {places: [[0, 0], [0, 1], [1, 0]], words: [1, 2, 1]}
        before, weights = session.run([rows, tf.convert_to_tensor(table)], fed)
        np.testing.assert_allclose(before, [weights[1:3].mean(0), weights[1]], rtol=1e-6)
        session.run(train, fed, options, found)
    names = [node.name for graph in found.partition_graphs for node in graph.node]
    assert names and not [name for name in names if "SimplifyEmbeddingLookup" in name]


def sequence_input_layer():
    columns = tf.contrib.feature_column
    words = columns.sequence_categorical_column_with_identity("word", 5)
    tags = columns.sequence_categorical_column_with_vocabulary_list("tag", ["a", "b"])
    first, second = (
        columns.sequence_categorical_column_with_hash_bucket(name, 7) for name in ("old", "new")
    )
    table = tf.constant_initializer(np.arange(10.0))
    dense = [
        tf.feature_column.embedding_column(words, 2, initializer=table),
        tf.feature_column.indicator_column(tags),
        columns.sequence_numeric_column("price", default_value=-1.0),
        *tf.feature_column.shared_embedding_columns([first, second], 3),
    ]
    places, shape = [[0, 0], [0, 1], [1, 0]], [2, 2]
    rows = {"tag": ["b", "a", "?"], "price": [0.5, 1.5, 2.5]}
    rows.update(old=["x", "y", "x"], new=["y", "x", "x"])
    features = {name: tf.SparseTensor(places, row, shape) for name, row in rows.items()}
    features["word"] = tf.SparseTensor(places, tf.constant([1, 4, 2], tf.int64), shape)
    with tf.variable_scope("net"):
        values, lengths = columns.sequence_input_layer(features, iter(dense), trainable=False)
    assert tf.trainable_variables() == []
    names = sorted(variable.op.name for variable in tf.global_variables())
    both = ("new_old_shared_embedding", "word_embedding")
    assert names == [f"net/sequence_input_layer/{name}/embedding_weights" for name in both]
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        found, counts = session.run([values, lengths])
    assert found.shape == (2, 2, 11) and counts.tolist() == [2, 1]
    np.testing.assert_array_equal(found[..., 0:3][0, 0], found[..., 3:6][0, 1])  # "y", twice.
    np.testing.assert_array_equal(found[..., 6], [[0.5, 1.5], [2.5, -1]])
    np.testing.assert_array_equal(found[..., 7:9], [[[0, 1], [1, 0]], [[0, 0], [0, 0]]])
    np.testing.assert_array_equal(found[..., 9:], [[[2, 3], [8, 9]], [[4, 5], [0, 0]]])


def keras_before_3():
    try:
        import keras.layers.convolutional as convolutional
        from keras import backend as K
        from keras.layers import core
    except ImportError:
        return  # TensorFlow 1.15 does not require Keras.
    if not hasattr(K, "set_session"):
        return  # Keras 2.5 to 2.15 has it in TensorFlow's `tf.keras` only.
    from keras.models import Sequential
    from keras.optimizers import SGD
    from keras.utils.np_utils import to_categorical

    with tf.Graph().as_default(), tf.Session() as session:
        K.set_session(session)
        model = Sequential([core.Dense(4, input_dim=4), core.Dense(2, activation="softmax")])
        model.compile(loss="categorical_crossentropy", optimizer=SGD(lr=0.1))
        model.fit(X, to_categorical(Y, 2), epochs=1, verbose=0)
        assert convolutional.Conv2D(1, 3)(tf.zeros([1, 4, 4, 1])).shape[1] == 2


def learn_dnn():
    columns = learn.infer_real_valued_columns_from_input(X)
    config = learn.estimators.RunConfig(num_cores=3, gpu_memory_fraction=0.6, tf_random_seed=1)
    model = learn.DNNClassifier(
        feature_columns=columns,
        hidden_units=[8, 8],
        n_classes=3,
        config=config,
        gradient_clip_norm=5.0,
    )
    model.fit(X, Y, steps=200)
    found = list(model.predict(X, as_iterable=True))
    assert np.mean(found == Y) > 0.8 and isinstance(found[0], (int, np.integer))
    assert model.evaluate(x=X, y=Y)["accuracy"] > 0.8
    assert next(model.predict(X)) == found[0]
    assert np.array(list(model.predict_proba(X))).shape == (120, 3)


def learn_linear():
    def inputs():
        return {"x": tf.constant(X), "w": tf.constant(["a", "b"] * 60)}, tf.constant(Y)

    wide = [layers.sparse_column_with_keys("w", ["a", "b"])]
    deep = [layers.real_valued_column("x", dimension=4)]
    model = learn.LinearClassifier(feature_columns=wide + deep, model_dir=tempfile.mkdtemp())
    model.fit(input_fn=inputs, steps=5)
    spec = learn.MetricSpec(tf.contrib.metrics.streaming_accuracy, prediction_key="classes")
    found = model.evaluate(input_fn=inputs, steps=1, metrics={"mine": spec})
    assert found["mine"] == found["accuracy"] and found["loss"] < 1
    both = learn.DNNLinearCombinedClassifier(
        model_dir=tempfile.mkdtemp(),
        linear_feature_columns=wide,
        dnn_feature_columns=deep,
        dnn_hidden_units=[4],
    )
    both.fit(input_fn=inputs, steps=5)
    assert both.evaluate(input_fn=inputs, steps=1)["global_step"] == 6  # Each optimizer counts.
    line = learn.LinearRegressor(feature_columns=deep).fit(input_fn=inputs, steps=5)
    assert len(list(line.predict(input_fn=inputs))) == 120


def learn_own_model():
    def model_fn(features, targets, mode, params):
        logits = layers.fully_connected(features, 2, activation_fn=None)
        loss = tf.contrib.losses.softmax_cross_entropy(logits, tf.one_hot(targets, 2))
        train = layers.optimize_loss(
            loss, tf.contrib.framework.get_global_step(), params["rate"], "SGD"
        )
        return {"class": tf.argmax(logits, 1)}, loss, train

    def model_for_predicting(features, targets, mode, params):
        if mode == learn.ModeKeys.INFER:
            return {"class": tf.argmax(features, 1)}, None, None
        return model_fn(features, targets, mode, params)

    def estimator_in(folder):
        return learn.Estimator(
            model_fn=model_for_predicting,
            params={"rate": 0.1},
            model_dir=folder,
            config=learn.RunConfig(save_checkpoints_steps=5),
        )

    monitor = learn.monitors.ValidationMonitor(X, Y, every_n_steps=5)
    model = estimator_in(tempfile.mkdtemp())
    model.fit(X, Y, steps=10, batch_size=16, monitors=[monitor])
    assert model.evaluate(X, Y)["global_step"] == 10
    assert "class" in next(iter(model.predict(X)))
    assert learn.SKCompat(model).predict(X)["class"].shape == (120,)

    def experiment(output_dir):
        return learn.Experiment(
            estimator_in(output_dir),
            lambda: (tf.constant(X, tf.float32), tf.constant(Y)),
            lambda: (tf.constant(X, tf.float32), tf.constant(Y)),
            train_steps=12,
            eval_steps=1,
        )

    measures, _ = learn.learn_runner.run(experiment, tempfile.mkdtemp())
    assert measures["global_step"] == 12


def more_than_contrib_took():
    """Calls of 0.8 and slips that TensorFlow's own contrib refuses."""
    model = learn.LinearClassifier(learn.infer_real_valued_columns_from_input(X))
    model.fit(X, Y, steps=5)
    assert len(model.predict(X)) == 120

    def inputs():
        return tf.constant(X, tf.float32), tf.constant(Y)

    def experiment(output_dir):
        return learn.Experiment(model, inputs, inputs, train_steps=10, eval_steps=1)

    measures, _ = learn.learn_runner.run(experiment, "")
    assert measures["global_step"] == 10
    hparams = tf.contrib.training.HParams(units=[1, 2])
    assert hparams.parse("units[1]=9").units == [1, 9]


def learn_exports():
    from tensorflow.contrib.learn.python.learn.utils import saved_model_export_utils as exports

    columns, folder = [layers.real_valued_column("", 4)], tempfile.mkdtemp()
    spec = tf.contrib.layers.create_feature_spec_for_parsing(columns)
    serving = learn.utils.input_fn_utils.build_parsing_serving_input_fn(spec)
    strategy = exports.make_export_strategy(serving, exports_to_keep=1)
    model = learn.LinearClassifier(columns, model_dir=folder, n_classes=3)

    def inputs():
        return {"": tf.constant(X, tf.float32)}, tf.constant(Y)

    trained = learn.Experiment(model, inputs, inputs, train_steps=5, eval_steps=1)
    assert not trained.reset_export_strategies([strategy])
    assert len(trained.train_and_evaluate()[1]) == 1
    exports.garbage_collect_exports(f"{folder}/export/Servo", 1)
    newest, seen = exports.get_most_recent_export(f"{folder}/export/Servo"), []
    assert newest.path.endswith(str(newest.export_version))

    def proceed(eval_results, checkpoint_path):
        seen.append((eval_results is None, checkpoint_path))
        return True

    trained.continuous_eval(0, 0, continuous_eval_predicate_fn=proceed)  # Until the last step.
    assert seen[0] == (True, None) and seen[1][1].endswith("-5") and len(seen) == 2
    trained.continuous_eval_on_train_data(delay_secs=0, throttle_delay_secs=0)
    assert "eval_continuous_on_train_data" in os.listdir(folder)


def learn_cluster():
    import json

    cluster = {"ps": ["localhost:1"], "worker": ["localhost:2", "localhost:3"]}
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": cluster, "task": {"type": "worker", "index": 1}}
    )
    try:
        config = learn.RunConfig()
    finally:
        del os.environ["TF_CONFIG"]
    assert (config.task_type, config.task_id, config.is_chief) == ("worker", 1, False)
    assert config.master == "grpc://localhost:3" and config.num_ps_replicas == 1
    assert config.cluster_spec.as_dict() == cluster


def learn_data():
    iris = learn.datasets.load_iris()
    assert iris.data.shape == (150, 4) and learn.datasets.load_dataset("iris").target.shape
    path = os.path.join(tempfile.mkdtemp(), "t.csv")
    with open(path, "w") as file:
        file.write("2,2,a,b\n1.5,2,0\n3,4,1\n")
    table = tf.contrib.learn.datasets.base.load_csv_with_header(
        filename=path, target_dtype=np.int32, features_dtype=np.float32
    )
    assert table.data.tolist() == [[1.5, 2], [3, 4]] and table.target.tolist() == [0, 1]
    words = learn.preprocessing.VocabularyProcessor(3)
    rows = np.array(list(words.fit_transform(["a b", "b c d e"])))
    assert rows.tolist() == [[1, 2, 0], [2, 3, 4]] and len(words.vocabulary_) == 6
    words.save(path)
    again = learn.preprocessing.VocabularyProcessor.restore(path)
    assert list(next(again.transform(["z a"]))) == [0, 1, 0]
