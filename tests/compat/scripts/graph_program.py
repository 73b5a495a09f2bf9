"""A program of TensorFlow 1.x in sections, which prints the same on both runtimes."""

import os
import sys
import tempfile

import numpy as np
import tensorflow as tf

SECTIONS = []


def section(function):
    SECTIONS.append(function)
    return function


def show(*values):
    for value in values:
        print(np.array2string(np.asarray(value), precision=5, floatmode="maxprec"))


def regression(seed=1):
    """Returns placeholders, the loss and a batch of a small regression."""
    tf.set_random_seed(seed)
    x, y = tf.placeholder(tf.float32, [None, 3], "x"), tf.placeholder(tf.float32, [None, 1], "y")
    w, b = tf.get_variable("w", [3, 1]), tf.get_variable("b", [1])
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y), name="loss")
    batch = np.random.RandomState(seed).rand(8, 3).astype(np.float32)
    return loss, {x: batch, y: batch.sum(1, keepdims=True)}


def initialize():
    return tf.group(tf.global_variables_initializer(), tf.local_variables_initializer())


@section
def optimizers():
    loss, feed = regression()
    for kind in (tf.train.AdamOptimizer, tf.train.MomentumOptimizer, tf.train.FtrlOptimizer):
        given = (0.1, 0.9) if kind is tf.train.MomentumOptimizer else (0.1,)
        train = kind(*given).minimize(loss)
        with tf.Session() as session:
            session.run(initialize())
            for _ in range(3):
                session.run(train, feed)
            show(session.run(loss, feed), session.run("w:0"))


@section
def global_step_and_schedule():
    loss, feed = regression()
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.1, step, 2, 0.5, staircase=True)
    train = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)
    with tf.Session() as session:
        session.run(initialize())
        for _ in range(4):
            session.run(train, feed)
            show(tf.train.global_step(session, step), session.run(rate))


@section
def integers_of_32_bits():
    count, pair = tf.Variable(0, trainable=False), tf.Variable([1, 2])
    more = tf.assign(pair, pair + tf.assign_add(count, 1))
    with tf.Session() as session:
        session.run(initialize())
        show(session.run(more), *session.run([count, pair, pair * 2]))
        session.run(tf.group(more))
        session.run(tf.assign(count, 7))
        show(session.run(count))


@section
def dropout_is_one_stream():
    loss, feed = regression()
    x = next(iter(feed))
    dropped = tf.nn.dropout(x * tf.get_variable("scale", [3]), rate=0.5, seed=7)
    noise = tf.random_normal([2], seed=3)
    more = tf.reduce_sum(dropped) + tf.reduce_sum(noise)
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss + more)
    with tf.Session() as session:
        session.run(initialize())
        for _ in range(2):
            show(session.run([train, more], feed)[1], session.run(dropped, feed))
        show(session.run(noise))


@section
def uninitialized_variables_are_named():
    loss, feed = regression()
    with tf.Session() as session:
        show(sorted(session.run(tf.report_uninitialized_variables())))
        try:
            session.run(loss, feed)
        except tf.errors.FailedPreconditionError as error:
            print("FailedPreconditionError", "w" in str(error))


@section
def errors_name_the_operation():
    loss, feed = regression()
    x = next(iter(feed))
    checked = tf.matmul(x, tf.get_variable("other", [3, 1]), name="product")
    with tf.Session() as session:
        session.run(initialize())
        try:
            session.run(checked, {x: np.zeros([2, 4], np.float32)})
        except ValueError as error:
            print("ValueError", "(2, 4)" in str(error))
        try:
            session.run(tf.gather(tf.get_variable("rows", [3]), 5, name="row"))
        except (tf.errors.InvalidArgumentError, tf.errors.FailedPreconditionError) as error:
            print(type(error).__name__, error.op.name if error.op else None)
        try:
            session.run(loss)
        except tf.errors.InvalidArgumentError as error:
            print(error.op.type)


@section
def control_flow():
    tf.set_random_seed(1)
    flag = tf.placeholder(tf.bool, [])
    w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
    chosen = tf.cond(flag, lambda: w * 2, lambda: w - 1)
    _, total = tf.while_loop(
        lambda i, _: i < 4, lambda i, total: (i + 1, total + w * tf.cast(i, tf.float32)), [0, w]
    )
    updated = tf.cond(flag, lambda: tf.assign_add(w, [1.0, 2.0]), lambda: tf.identity(w))
    with tf.Session() as session:
        session.run(initialize())
        show(session.run(chosen, {flag: True}), session.run(chosen, {flag: False}))
        show(session.run(total), session.run(updated, {flag: True}), session.run(w))


@section
def recurrent_network_feeds_its_state():
    tf.set_random_seed(2)
    x = tf.placeholder(tf.float32, [None, 5, 2])
    w = tf.get_variable("w", [6, 4])

    def cell(state, now):
        return tf.tanh(tf.matmul(tf.concat([now, state], 1), w))

    first = tf.placeholder_with_default(tf.zeros([3, 4]), [3, 4])
    states = tf.scan(cell, tf.transpose(x, [1, 0, 2]), first)
    train = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(states[-1] ** 2))
    with tf.Session() as session:
        session.run(initialize())
        state = np.zeros([3, 4], np.float32)
        for i in range(3):
            batch = np.random.RandomState(i).rand(3, 5, 2)
            state, _ = session.run([states[-1], train], {x: batch, first: state})
            show(state)


@section
def reinitializable_iterator():
    loss, _ = regression()
    first = tf.data.Dataset.range(4).map(lambda i: tf.cast(i, tf.float32)).batch(2)
    second = tf.data.Dataset.from_tensor_slices(np.float32([7, 8, 9])).batch(3)
    kinds = tf.data.get_output_types(first), tf.data.get_output_shapes(first)
    iterator = tf.data.Iterator.from_structure(*kinds)
    value = tf.reduce_sum(iterator.get_next()) * tf.get_variable(
        "s", [], initializer=tf.ones_initializer()
    )
    with tf.Session() as session:
        session.run(initialize())
        for data in (first, second, first):
            session.run(iterator.make_initializer(data))
            try:
                while True:
                    show(session.run(value))
            except tf.errors.OutOfRangeError:
                print("end")


@section
def one_shot_iterator_that_waits_for_an_update():
    calls = tf.get_variable("calls", initializer=0)
    sources = (
        tf.data.Dataset.range(10).map(lambda x: x * x),
        tf.data.Dataset.from_generator(lambda: range(10), tf.int64, []),
    )
    with tf.control_dependencies([tf.assign_add(calls, 1)]):
        squares, plain = [data.make_one_shot_iterator().get_next() for data in sources]
    for _ in range(2):  # Each session reads from the beginning, and all of its calls go on.
        with tf.Session() as session:
            session.run(initialize())
            for fetches in ([squares, plain], plain, [squares, calls], [plain, calls]):
                show(session.run(fetches))
            try:
                while True:
                    session.run(squares)
            except tf.errors.OutOfRangeError:
                show(session.run(calls))


@section
def queues_and_their_runners():
    tf.set_random_seed(1)
    limited = tf.train.limit_epochs(tf.constant([1.0, 2.0, 3.0, 4.0]), num_epochs=3)
    queue = tf.FIFOQueue(20, tf.float32, shapes=[])
    runner = tf.train.QueueRunner(queue, [queue.enqueue_many(limited)])
    tf.train.add_queue_runner(runner)
    total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
    add = tf.assign_add(total, tf.reduce_sum(queue.dequeue_many(2)))
    with tf.Session() as session:
        session.run(initialize())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        calls = 0
        try:
            while not coordinator.should_stop():
                session.run(add)
                calls += 1
        except tf.errors.OutOfRangeError:
            print("end after", calls)
        coordinator.request_stop()
        coordinator.join(threads)
        show(session.run(total))


@section
def python_functions():
    w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
    before = tf.py_func(lambda: np.float32([1, 2]), [], tf.float32)
    before.set_shape([2])
    after = tf.py_func(lambda value: value * 10, [w + before], tf.float32)
    with tf.Session() as session:
        session.run(initialize())
        show(session.run(after), session.run(tf.py_func(np.sin, [np.float32(0.5)], tf.float32)))


@section
def tables():
    w = tf.get_variable("w", [3], initializer=tf.constant_initializer([5.0, 6.0, 7.0]))
    keys = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
    words = tf.lookup.StaticHashTable(keys, 0)
    found = tf.gather(w, words.lookup(tf.constant(["b", "z"])))
    numbers = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.constant([5, 6], tf.int64), ["five", "six"]), "none"
    )
    of_model = numbers.lookup(tf.cast(w, tf.int64))
    with tf.Session() as session:
        session.run([initialize(), tf.tables_initializer()])
        show(session.run(found), session.run(of_model))


@section
def metrics_of_local_variables():
    loss, feed = regression()
    mean, update = tf.metrics.mean(loss)
    with tf.Session() as session:
        session.run(initialize())
        for _ in range(2):
            session.run(update, feed)
        show(session.run(mean))


@section
def partitioned_variables_and_averages():
    tf.set_random_seed(1)
    split = tf.fixed_size_partitioner(2)
    table = tf.get_variable("table", [5, 2], partitioner=split)
    rows = tf.nn.embedding_lookup(table, [0, 4, 4], partition_strategy="div")
    loss = tf.reduce_sum(rows**2)
    average = tf.train.ExponentialMovingAverage(0.9)
    train = tf.train.AdagradOptimizer(0.5).minimize(loss)
    with tf.control_dependencies([train]):
        train = average.apply(tf.trainable_variables())
    with tf.Session() as session:
        session.run(initialize())
        for _ in range(3):
            session.run(train)
        show(session.run(tf.convert_to_tensor(table)))
        show(*session.run([average.average(v) for v in tf.trainable_variables()]))


@section
def checkpoints():
    loss, feed = regression()
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
    saver = tf.train.Saver(max_to_keep=2)
    folder = tempfile.mkdtemp()
    with tf.Session() as session:
        session.run(initialize())
        for _ in range(3):
            session.run(train, feed)
            saver.save(session, os.path.join(folder, "model"), global_step=step)
        show(session.run("w:0"))
    print(sorted(f for f in os.listdir(folder) if f.endswith(".index")))
    with tf.Session() as session:
        saver.restore(session, tf.train.latest_checkpoint(folder))
        show(session.run("w:0"), session.run(step), session.run(loss, feed))
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(folder))
    print(sorted(reader.get_variable_to_shape_map()))


@section
def each_session_has_its_variables():
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    add = tf.assign_add(w, 1.0)
    one, two = tf.Session(), tf.Session()
    for session in (one, two, one):
        session.run(initialize()) if session is two else session.run(w.initializer)
    show(one.run(add), one.run(add), two.run(add), one.run(w), two.run(w))
    one.close()
    two.close()


@section
def operations_are_added_between_calls():
    rate = tf.get_variable("rate", [], initializer=tf.ones_initializer(), trainable=False)
    loss, feed = regression()
    train = tf.train.GradientDescentOptimizer(rate).minimize(loss)
    with tf.Session() as session:
        session.run(initialize())
        for i in range(3):
            session.run(tf.assign(rate, 0.1 / (i + 1)))
            session.run(train, feed)
            show(session.run(loss, feed), session.run(rate))


@section
def fetches_and_feeds_of_any_kind():
    loss, feed = regression()
    x = next(iter(feed))
    gradient = tf.gradients(
        tf.nn.embedding_lookup(tf.get_variable("e", [4, 2]), [1, 3]), tf.trainable_variables()
    )[-1]
    middle = tf.square(x * tf.get_variable("m", [3]), name="middle")
    total = tf.reduce_sum(middle)
    sparse = tf.sparse_placeholder(tf.float32)
    dense = tf.sparse_tensor_dense_matmul(sparse, tf.get_variable("d", [3, 1]))
    with tf.Session() as session:
        session.run(initialize())
        print(sorted(session.run({"a": loss, "b": [tf.no_op(), (loss,)]}, feed)))
        print(type(session.run(gradient)).__name__)
        show(session.run(total, {middle: np.ones([2, 3])}), session.run("middle:0", feed).shape)
        given = tf.SparseTensorValue([[0, 1]], [2.0], [1, 3])
        show(session.run(dense, {sparse: given}))
        call = session.make_callable([loss, total], [x, list(feed)[1]])
        show(*call(*feed.values()))
        show(loss.eval(feed), session.run(tf.trainable_variables()[0]))
        # A variable of the second kind of TensorFlow 1.x, which is a tensor.
        show(
            session.run(
                total, {tf.get_default_graph().get_tensor_by_name("m:0"): np.ones(3), **feed}
            )
        )


@section
def several_graphs():
    for number in (1.0, 2.0):
        with tf.Graph().as_default(), tf.Session() as session:
            w = tf.get_variable("w", [], initializer=tf.constant_initializer(number))
            session.run(initialize())
            tf.get_default_graph().finalize()
            show(session.run(w))


@section
def summaries():
    loss, feed = regression()
    tf.summary.scalar("loss", loss)
    tf.summary.histogram("w", tf.trainable_variables()[0])
    merged = tf.summary.merge_all()
    with tf.Session() as session:
        session.run(initialize())
        summary = tf.Summary.FromString(session.run(merged, feed))
        print([value.tag for value in summary.value])
        show(summary.value[0].simple_value)


@section
def monitored_session_with_a_hook():
    class Hook(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return tf.train.SessionRunArgs([loss, tf.train.get_global_step()])

        def after_run(self, run_context, run_values):
            show(*run_values.results)

    loss, feed = regression()
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    folder = tempfile.mkdtemp()
    for last in (2, 4):
        hooks = [Hook(), tf.train.StopAtStepHook(last_step=last)]
        with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=hooks) as session:
            while not session.should_stop():
                session.run(train, feed)
    print(os.path.basename(tf.train.latest_checkpoint(folder)))


if __name__ == "__main__":
    for function in SECTIONS:
        if len(sys.argv) > 1 and function.__name__ not in sys.argv[1:]:
            continue
        print("##", function.__name__, flush=True)
        with tf.Graph().as_default():
            function()
