"""`tf.estimator`, which TensorFlow removed in 2.16, on the legacy or the modern runtime.

    def model_fn(features, labels, mode, params):
        loss = tf1.losses.mean_squared_error(labels, tf1.layers.dense(features["x"], 1))
        optimizer = tf1.train.GradientDescentOptimizer(params["rate"])
        train = optimizer.minimize(loss, tf1.train.get_global_step())
        return compat.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    estimator = compat.estimator.Estimator(model_fn, "logs", params={"rate": 0.1})
    compat.estimator.train_and_evaluate(
        estimator,
        compat.estimator.TrainSpec(train_input_fn, max_steps=1000),
        compat.estimator.EvalSpec(eval_input_fn),
    )

Its names are those of `tf.compat.v1.estimator`, from the package tensorflow-estimator. Two things
differ from that package: estimators train on the runtime of this process (`tf.compat.v1`, or a
`ClusterCoordinator`), and the tasks of a cluster in TF_CONFIG exit when the run is over. TensorFlow
is loaded on the first use.
"""

from compat.estimator._names import __dir__, __getattr__  # noqa: F401 - Python asks for them.
