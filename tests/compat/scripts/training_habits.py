"""Habits of scripts around tf.contrib.training and tf.contrib.distribute, one a function."""

import tempfile
import time

import numpy as np
import tensorflow as tf

# Of TensorFlow 1.15.5.
ONE_REPLICA, TWO_REPLICAS = [0.836511, 0.841330], [0.830835, 0.833477]
HAS_CONTRIB = not tf.contrib.tpu.TPUEstimator.__module__.startswith("compat")


def _batches(fetches, count):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        found = [session.run(fetches) for _ in range(count)]
        coord.request_stop()
        coord.join(threads)
    return found


def buckets():
    length = tf.train.range_input_producer(9, num_epochs=1, shuffle=False).dequeue()
    words = tf.range(length)
    lengths, batch = tf.contrib.training.bucket_by_sequence_length(
        length,
        {"words": words, "twice": length * 2},
        3,
        [3, 6],
        dynamic_pad=True,
        capacity=8,
    )
    found = _batches([lengths, batch], 3)
    by_length = {int(size[0]): (list(size), each) for size, each in found}
    assert sorted(by_length) == [0, 3, 6]
    sizes, batch = by_length[3]
    assert sizes == [3, 4, 5] and batch["twice"].tolist() == [6, 8, 10]
    assert batch["words"].tolist() == [[0, 1, 2, 0, 0], [0, 1, 2, 3, 0], [0, 1, 2, 3, 4]]
    tf.reset_default_graph()
    number = tf.train.range_input_producer(10, num_epochs=1, shuffle=False).dequeue()
    which, numbers = tf.contrib.training.bucket(
        [number],
        number % 2,
        [2, 4],
        2,
        keep_input=number < 9,
        allow_smaller_final_batch=True,
    )
    found = sorted((int(kind), rows.tolist()) for kind, rows in _batches([which, numbers], 4))
    assert found == [(0, [0, 2]), (0, [4, 6]), (0, [8]), (1, [1, 3, 5, 7])], found
    types = {"a": int, "b": str, "c": float}
    parsed = tf.contrib.training.parse_values("a=1,b[1]=x,c=[2,3]", types)
    assert parsed == {"a": 1, "b": {1: "x"}, "c": [2.0, 3.0]}


def input_that_ends_in_a_loop_of_its_supervisor():
    _reads_all_in_a_loop_of_its_supervisor()


def input_that_ends_before_a_loop_of_its_supervisor():
    _reads_all_in_a_loop_of_its_supervisor(started_after=1)


def input_of_which_a_queue_ends_before_a_loop_of_its_supervisor():
    _reads_all_in_a_loop_of_its_supervisor(started_after=0.5, each_takes=0.3)


def _reads_all_in_a_loop_of_its_supervisor(started_after=0, each_takes=0):
    def slow(number):
        time.sleep(each_takes)
        return number

    number = tf.train.range_input_producer(4, num_epochs=1, shuffle=False).dequeue()
    batch = tf.train.batch([tf.py_func(slow, [number], tf.int32)], 2, shapes=[[]])
    total = tf.Variable(0)
    add = total.assign_add(tf.reduce_sum(batch))
    supervisor = tf.train.Supervisor(
        logdir=tempfile.mkdtemp(), summary_op=None, local_init_op=tf.local_variables_initializer()
    )
    rounds, sums = 0, []
    with supervisor.managed_session() as session:
        time.sleep(started_after)  # The supervisor's threads fill the queues, and some end.
        while not supervisor.should_stop():
            rounds += 1
            assert rounds < 100, "it began again at the end of its input"
            coord = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coord)
            try:
                while not coord.should_stop():
                    sums.append(int(session.run(add)))
            except tf.errors.OutOfRangeError:
                pass
            finally:
                coord.request_stop()
            coord.join(threads)
    assert rounds > 1 and sums == [1, 6], (rounds, sums)


def _linear(features, labels):
    """Returns the loss of a model, and what trains it by an optimizer."""
    ones = tf.ones_initializer()
    made = tf.layers.dense(features["x"], 1, kernel_initializer=ones, name="dense")
    loss = tf.losses.mean_squared_error(labels, made)
    return loss, lambda optimizer: optimizer.minimize(loss, tf.train.get_global_step())


def _rows(params):
    features = {"x": np.arange(40, dtype="f").reshape(20, 2) / 40}
    data = tf.data.Dataset.from_tensor_slices((features, np.ones([20, 1], "f")))
    return data.repeat().batch(params["batch_size"], drop_remainder=True)


def _trains_to(model, inputs, expected):
    model.train(inputs, steps=7)
    kernel = model.get_variable_value("dense/kernel").ravel()
    np.testing.assert_allclose(kernel, expected, rtol=1e-5)


def strategies():
    def model_fn(features, labels, mode):
        loss, train = _linear(features, labels)
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train(optimizer))

    distribute = tf.contrib.distribute
    ops = distribute.AllReduceCrossDeviceOps("nccl", num_packs=2)
    rows = [
        (distribute.MirroredStrategy(num_gpus=0, cross_device_ops=ops), ONE_REPLICA),
        (distribute.MirroredStrategy(num_gpus_per_worker=2), TWO_REPLICAS),
        (tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"]), TWO_REPLICAS),
        (distribute.ParameterServerStrategy(num_gpus_per_worker=0), ONE_REPLICA),
        (distribute.CollectiveAllReduceStrategy(num_gpus_per_worker=0), ONE_REPLICA),
        (distribute.OneDeviceStrategy("/cpu:0"), ONE_REPLICA),
    ]
    if not HAS_CONTRIB:  # TensorFlow 1.15 needs the TPU.
        resolver = tf.contrib.cluster_resolver.TPUClusterResolver()
        distribute.initialize_tpu_system(resolver)
        rows.append((distribute.TPUStrategy(resolver), ONE_REPLICA))
    for strategy, expected in rows:
        assert isinstance(strategy, distribute.DistributionStrategy)
        chosen = distribute.DistributeConfig(train_distribute=strategy)
        config = tf.estimator.RunConfig(tempfile.mkdtemp(), experimental_distribute=chosen)
        assert config.train_distribute is strategy
        model = tf.estimator.Estimator(model_fn, config=config)
        _trains_to(model, lambda: _rows({"batch_size": 4}), expected)


def replicated_model_functions():
    estimator = tf.contrib.estimator

    def model_fn(features, labels, mode):
        loss, train = _linear(features, labels)
        optimizer = estimator.TowerOptimizer(tf.train.GradientDescentOptimizer(0.1))
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train(optimizer))

    for devices in (None, ["/gpu:0", "/gpu:1"]):
        replicated = estimator.replicate_model_fn(model_fn, devices=devices)
        model = tf.estimator.Estimator(replicated, tempfile.mkdtemp())
        _trains_to(model, lambda: _rows({"batch_size": 4}), ONE_REPLICA)


def tpus_that_are_not_here():
    tpu = tf.contrib.tpu

    def model_fn(features, labels, mode, params):
        loss, train = _linear(features, labels)
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        if params["use"]:
            optimizer = tpu.CrossShardOptimizer(optimizer)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train(optimizer))

    resolver = tf.contrib.cluster_resolver.TPUClusterResolver(tpu="")
    config = tpu.RunConfig(cluster=resolver, model_dir=tempfile.mkdtemp())
    use = not HAS_CONTRIB  # TensorFlow 1.15 needs the TPU.
    model = tpu.TPUEstimator(
        model_fn, config=config, use_tpu=use, train_batch_size=4, params={"use": use}
    )
    _trains_to(model, _rows, ONE_REPLICA)


def labels_of_predictions():
    """A model of `tf.contrib.learn` builds its loss, of the labels before, where it predicts."""
    learn = tf.contrib.learn
    rows = np.arange(60, dtype="f").reshape(20, 3) / 60

    def model_fn(features, labels):
        made = tf.reshape(tf.contrib.layers.fully_connected(features, 1, None), [-1])
        loss = tf.losses.mean_squared_error(tf.reshape(labels, [-1]), made)
        step = tf.contrib.framework.get_global_step()
        return made, loss, tf.contrib.layers.optimize_loss(loss, step, 0.1, "Adagrad")

    model = learn.SKCompat(learn.Estimator(model_fn, model_dir=tempfile.mkdtemp()))
    model.fit(rows, rows[:, :1], batch_size=5, steps=3)
    assert model.predict(rows).shape == (20,)


def input_checkpoints():
    """The data go on where they were, in one call of `train` after the other."""

    def model_fn(features, labels, mode):
        total = tf.get_variable("total", initializer=0.0)
        optimizer, step = tf.train.GradientDescentOptimizer(1.0), tf.train.get_global_step()
        train = optimizer.minimize(-total * features["x"], step)
        return tf.estimator.EstimatorSpec(mode, loss=total, train_op=train)

    def data():
        return tf.data.Dataset.range(1, 41).map(lambda x: {"x": tf.cast(x, tf.float32)})

    config = tf.estimator.RunConfig(tempfile.mkdtemp(), save_checkpoints_steps=3)
    model = tf.estimator.Estimator(model_fn, config=config)
    hook = tf.data.experimental.CheckpointInputPipelineHook(model)
    for hooks in ([hook], [hook], [tf.data.experimental.CheckpointInputPipelineHook(model)]):
        model.train(data, steps=5, hooks=hooks)
    assert model.get_variable_value("total") == sum(range(1, 16))
