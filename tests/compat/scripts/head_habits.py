"""Habits of scripts around the heads of tf.contrib.estimator."""

import numpy as np
import tensorflow as tf

# Of TensorFlow 1.15.5.
# fmt: off
LOGISTIC = [0.670908, 5, 0.6, 2.34818, 0.598737, 0.563089, 0.877911]
POISSON = [1.63725, 5, 1.875, 1.63725, 1.73187, 1.0277, 2.36821]
LABELS = [
    0.675926, 0.777778, 0.810786, 0.925926, 0.819398, 0.760028, 0.939087, 0.778409, 0.571853, 5,
    2.57334, 0.561404, 0.704545, 0.516153, 0.406472, 0.761905, 0.738095, -5.95078, -1.68073,
]
WORDS = [0.367857, 0.327151, 0.750674, 5, 0.750674, 5.17849, 1.00516]
SEVERAL = [
    0.301587, 0.320464, 0.0398772, 0.76525, 5, 0.0591508, 0.422502, 0.0398772, 0.76525,
    0.0664666,
]
# fmt: on
ROWS = np.sin(np.arange(24, dtype=np.float32)).reshape(8, 3)


def _same(values, golden):
    """Compares numbers with those of TensorFlow 1.15.5."""
    values = np.concatenate([np.ravel(value).astype(float) for value in values])
    np.testing.assert_allclose(values, golden, rtol=1e-4, atol=1e-6, err_msg=str(list(values)))


def _trained(head, labels, weight=None):
    """Returns the metrics of a linear model with a head, by name, and its first prediction."""

    def model(features, labels, mode):
        start = tf.constant_initializer(np.linspace(-0.5, 0.6, 3 * head.logits_dimension))
        logits = tf.layers.dense(features["x"], head.logits_dimension, kernel_initializer=start)
        return head.create_estimator_spec(
            features=features,
            mode=mode,
            logits=logits,
            labels=labels,
            train_op_fn=lambda loss: tf.train.GradientDescentOptimizer(0.5).minimize(
                loss, global_step=tf.train.get_global_step()
            ),
        )

    def inputs():
        features = {"x": tf.constant(ROWS)}
        if weight is not None:
            features["weight"] = tf.constant(weight)
        return features, labels()

    estimator = tf.estimator.Estimator(model)
    estimator.train(inputs, steps=5)
    metrics = estimator.evaluate(inputs, steps=1)
    predicted = next(estimator.predict(inputs, yield_single_examples=False))
    return metrics, predicted


def _listed(found):
    metrics, predicted = found
    names = sorted(metrics)
    arrays = [np.ravel(predicted[name]) for name in sorted(predicted)]
    sums = [array.astype(float).dot(np.cos(range(len(array)))) for array in arrays]
    return names, [[metrics[name] for name in names], sums]


def heads_of_regressions():
    contrib = tf.contrib.estimator
    logistic = contrib.logistic_regression_head(weight_column="weight", name="own")
    shares = lambda: tf.constant(np.linspace(0.1, 0.8, 8), tf.float32)[:, None]  # noqa: E731
    names, found = _listed(_trained(logistic, shares, weight=np.arange(8, dtype="f")))
    assert names[:2] == ["average_loss/own", "global_step"], names
    _same(found, LOGISTIC)
    counts = lambda: tf.constant(np.arange(16) % 5, tf.float32, [8, 2])  # noqa: E731
    _, found = _listed(_trained(contrib.poisson_regression_head(label_dimension=2), counts))
    _same(found, POISSON)


def heads_of_several_labels():
    contrib = tf.contrib.estimator
    multi_hot = (np.arange(24).reshape(8, 3) % 5 < 2).astype(np.int64)
    head = contrib.multi_label_head(
        3, thresholds=[0.4, 0.5], classes_for_class_based_metrics=[0, 2], weight_column="weight"
    )
    weight = np.arange(1, 9, dtype="f")[:, None]
    names, found = _listed(_trained(head, lambda: tf.constant(multi_hot), weight))
    assert "auc_precision_recall/class0" in names and "recall/positive_threshold_0.4" in names
    _same(found, LABELS)
    words = contrib.multi_label_head(3, label_vocabulary=["a", "b", "c"])

    def sparse():
        rows, columns = np.nonzero(multi_hot)
        values = tf.constant([b"abc"[column : column + 1] for column in columns])
        return tf.SparseTensor(np.stack([rows, columns], 1), values, [8, 3])

    names, found = _listed(_trained(words, sparse))
    assert names == ["auc", "auc_precision_recall", "average_loss", "global_step", "loss"]
    _same(found, WORDS)
    several = contrib.multi_head(
        [contrib.regression_head(name="size"), contrib.multi_label_head(2, name="tags")],
        head_weights=[1.0, 0.5],
    )

    def truth():
        return {"size": tf.constant(ROWS[:, :1]), "tags": tf.constant(multi_hot[:, :2])}

    metrics, predicted = _trained(several, truth)
    assert "loss/size" in metrics and ("tags", "probabilities") in predicted
    _same([[metrics[name] for name in sorted(metrics)]], SEVERAL)


def heads_of_tensorflow_2():
    if [*map(int, tf.VERSION.split(".")[:2])] < [2, 16]:
        return  # There `tf.estimator` is TensorFlow's own.
    columns = [tf.feature_column.numeric_column("x", shape=3)]
    labels = np.arange(8)[:, None] % 2

    def rate():
        return tf.train.exponential_decay(1.0, tf.train.get_global_step(), 1, 0.5)

    def inputs():
        return {"x": tf.constant(ROWS)}, tf.constant(labels)

    losses = []
    for estimator in (
        tf.estimator.LinearClassifier(
            columns, optimizer=lambda: tf.train.GradientDescentOptimizer(rate())
        ),
        tf.estimator.LinearEstimator(
            tf.estimator.BinaryClassHead(),
            columns,
            optimizer=lambda: tf.keras.optimizers.legacy.SGD(rate()),
        ),
    ):
        estimator.train(inputs, steps=3)
        found = estimator.evaluate(inputs, steps=1)
        assert found["global_step"] == 3
        losses.append(found["average_loss"])
    np.testing.assert_allclose(*losses, rtol=1e-6)
