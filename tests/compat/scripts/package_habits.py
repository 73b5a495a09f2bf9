"""Habits of scripts around other packages of tf.contrib, one a function."""

import tempfile

import numpy as np
import tensorflow as tf


def crf_tagger():
    crf, scores = tf.contrib.crf, np.random.RandomState(5).randn(3, 5, 4).astype(np.float32)
    inputs, lengths = tf.constant(scores), tf.constant([5, 3, 1])
    tags = tf.constant(np.arange(15).reshape(3, 5) % 4)
    moves = tf.constant(np.eye(4, dtype=np.float32))
    likelihood, _ = crf.crf_log_likelihood(inputs, tags, lengths, moves)
    best, score = crf.crf_decode(inputs, moves, lengths)
    gradient = tf.gradients(likelihood, moves)[0]
    with tf.Session() as session:
        values = session.run([likelihood, score, gradient[0]])
        path = session.run(best).tolist()
    # Of TensorFlow 1.15.
    golden = [
        [-9.543998, -6.139559, -1.257536],
        [9.144185, 2.019121, 0.355438],
        [-0.687806, 0.575551, -0.188319, -0.124322],
    ]
    for value, known in zip(values, golden):
        np.testing.assert_allclose(value, known, rtol=1e-5)
    assert path == [[2, 1, 1, 1, 1], [0, 0, 0, 0, 0], [3, 0, 0, 0, 0]]
    assert crf.viterbi_decode(scores[0], np.eye(4))[0] == path[0]
    with tf.variable_scope("tagger"):
        assert crf.crf_log_likelihood(inputs, tags, lengths)[1].op.name == "tagger/transitions"


def distort():
    from tensorflow.contrib.image.python.ops import distort_image_ops

    image = tf.constant(np.random.RandomState(0).rand(2, 2, 3), tf.float32)
    same = distort_image_ops.adjust_hsv_in_yiq(image, 0, 1, 1)
    other = distort_image_ops.random_hsv_in_yiq(image, 0.1, 0.5, 1.5)
    with tf.Session() as session:
        before, after, _ = session.run([image, same, other])
    np.testing.assert_allclose(before, after, atol=1e-5)


def transform_images():
    images, x = tf.constant(np.arange(32).reshape(2, 4, 4, 1), tf.float32), tf.contrib.image
    turned = x.rotate(images, [0.3, -0.5], "BILINEAR")
    turns = x.angles_to_projective_transforms([0.1, 0.2], 4.0, 4.0)
    moves = x.translations_to_projective_transforms([1.0, 2.0])
    fetches = [
        turned,
        x.rotate(images[0, :, :, 0], 0.7),
        x.rotate(tf.cast(images[0], tf.uint8), np.pi / 2),
        x.translate(images, [[1.0, 0], [0, 0.5]], "BILINEAR"),
        x.transform(images, [1, 0.2, 0, 0, 1.1, 0, 0, 0.01], output_shape=[3, 5]),
        x.compose_transforms(turns, moves, [1, 0, 0, 0, 1, 0, 0.1, 0.2]),
        tf.gradients(tf.reduce_sum(turned), images)[0],
    ]
    with tf.Session() as session:
        values = session.run(fetches)
    sums = [value.astype(float).dot(range(len(value))) for value in map(np.ravel, values)]
    # Of TensorFlow 1.15.
    golden = [8780.727162, 811, 900, 8869, 6326, -27.69598842, 426.678216]
    np.testing.assert_allclose(sums, golden, rtol=1e-5)


def optimizers_of_contrib():
    opt = tf.contrib.opt

    def trained(optimizer, **options):
        tf.reset_default_graph()
        table = tf.get_variable("table", initializer=np.arange(6, dtype="f").reshape(3, 2) / 7)
        bias = tf.get_variable("bias", initializer=np.float32(0.5))
        rows = tf.nn.embedding_lookup(table, [1, 2, 1])
        loss = tf.reduce_sum(rows * [0.5, -2.0]) + 3 * bias  # Whose gradients are constant.
        pairs = optimizer.compute_gradients(loss)
        train = optimizer.apply_gradients(pairs, **options)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(train)
            values = session.run(tf.global_variables())
        return sum(np.cos(value.size) * float(value.sum()) for value in values)

    adagrad = opt.extend_with_decoupled_weight_decay(tf.train.AdagradOptimizer)
    values = [
        trained(opt.LazyAdamOptimizer(0.1)),
        trained(opt.AdamWOptimizer(0.01, learning_rate=0.1)),
        trained(opt.MomentumWOptimizer(0.02, 0.1, 0.9)),
        trained(adagrad(weight_decay=0.3, learning_rate=0.1), decay_var_list=[]),
        trained(opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.1), 0.5)),
    ]
    golden = [2.402266, 2.338822, -3.624108, 77.251166, 6.038996]  # Of TensorFlow 1.15.
    np.testing.assert_allclose(values, golden, rtol=1e-4)


def estimator_of_tpus_on_a_cpu():
    tpu = tf.contrib.tpu

    def model(features, labels, mode, params):
        output = tf.layers.dense(features, 1, kernel_initializer=tf.ones_initializer())[:, 0]
        loss = tf.losses.mean_squared_error(labels, output)
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
        metrics = (lambda y, p: {"error": tf.metrics.mean_absolute_error(y, p)}, [labels, output])
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train, eval_metrics=metrics)

    def inputs(params):
        rows = np.arange(32, dtype=np.float32).reshape(16, 2) / 32
        data = tf.data.Dataset.from_tensor_slices((rows, rows.sum(1) + 1))
        return data.repeat().batch(params["batch_size"], drop_remainder=True)

    config = tpu.RunConfig(
        model_dir=tempfile.mkdtemp(),
        tpu_config=tpu.TPUConfig(
            2, per_host_input_for_training=tpu.InputPipelineConfig.PER_HOST_V2
        ),
    )
    estimator = tpu.TPUEstimator(
        model, config=config, use_tpu=False, train_batch_size=4, eval_batch_size=8
    )
    estimator.train(inputs, max_steps=20)
    found = estimator.evaluate(inputs, steps=2)
    np.testing.assert_allclose([found["loss"], found["error"]], [0.316359, 0.556552], rtol=1e-4)


def keras_models_take_what_their_layers_take():
    from tensorflow.keras.models import Sequential

    layers, images = tf.keras.layers, tf.placeholder(tf.float32, [None, 28, 28])
    model = Sequential([layers.Reshape([28, 28, 1], input_shape=(784,)), layers.Flatten()])
    inputs = layers.Input((784,))
    other = tf.keras.Model(inputs, layers.Dense(3)(layers.Reshape([784])(inputs)))
    assert isinstance(other, tf.keras.models.Model) and model(images).shape[1] == 784
    assert other(images).shape[1] == 3


def datasets_of_contrib():
    data = tf.contrib.data  # As of TensorFlow 1.2 to 1.4.
    folder = tempfile.mkdtemp()
    for name in "cab":
        with open(folder + "/" + name, "w") as file:
            file.write(name * 3)
    names = data.Dataset.list_files(folder + "/*").map(
        lambda name: tf.string_split([name], "/").values[-1], num_threads=2, output_buffer_size=8
    )
    numbers = data.Dataset.range(6).map(lambda x: x * 2, 2, 4)
    grouped = numbers.group_by_window(lambda x: x % 3, lambda key, window: window.batch(2), 2)
    pairs = data.Dataset.zip((data.Dataset.range(3), data.Dataset.from_tensors([5, 6]).unbatch()))
    lines = data.Dataset.from_tensor_slices([folder + "/a", folder + "/b"])
    lines = lines.apply(data.sloppy_interleave(data.TextLineDataset, cycle_length=1))
    assert isinstance(grouped, data.Dataset) and not isinstance(1, data.Dataset)

    def elements(dataset):
        element = dataset.make_one_shot_iterator().get_next()
        with tf.Session() as session:
            try:
                while True:
                    yield session.run(element)
            except tf.errors.OutOfRangeError:
                pass

    assert [*elements(names)] == [b"a", b"b", b"c"]
    assert sorted(x for batch in elements(grouped) for x in batch) == [0, 2, 4, 6, 8, 10]
    assert [*elements(pairs)] == [(0, 5), (1, 6)]
    assert [*elements(lines)] == [b"aaa", b"bbb"]


def estimators_of_contrib():
    contrib = tf.contrib.estimator

    def model(features, labels, mode):
        logits = tf.layers.dense(features["x"], 3, kernel_initializer=tf.ones_initializer())
        optimizer = contrib.clip_gradients_by_norm(tf.train.GradientDescentOptimizer(0.5), 0.25)
        return contrib.multi_class_head(3).create_estimator_spec(
            features,
            mode,
            logits,
            labels,
            train_op_fn=lambda loss: optimizer.minimize(loss, tf.train.get_global_step()),
        )

    def inputs():
        rows = np.arange(16, dtype=np.float32).reshape(8, 2) / 16
        features = {"x": rows, "key": np.arange(8)}
        labels = np.arange(8).reshape(8, 1) % 3
        return tf.data.Dataset.from_tensor_slices((features, labels)).repeat(30).batch(4)

    estimator = contrib.forward_features(tf.estimator.Estimator(model), "key")
    hook = contrib.stop_if_no_decrease_hook(estimator, "loss", 10)
    estimator.train(inputs, [hook], steps=20)
    assert [found["key"] for found in estimator.predict(inputs)][:4] == [0, 1, 2, 3]
    found = estimator.evaluate(inputs, steps=2)
    np.testing.assert_allclose([found["loss"], found["accuracy"]], [1.072105, 0.375], rtol=1e-4)
    assert contrib.read_eval_metrics(estimator.eval_dir())[20]["loss"] == found["loss"]
