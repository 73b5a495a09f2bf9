"""The scripts of the documents that this project descends from, cut out of them, as they stand.

Where the documents are not there, a script with the same habits takes the place of each. Documents
000 and 001 start the script of 002, or one that they do not show. That of 003 is no program: it is
the end of somebody's session, whose `sess`, `ops` and `np` it uses without making them, and its
matrices have sizes that are floats, which NumPy refuses. What it was to compute is
`experiments.classics.matpow`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.compat.scripts.conftest import RunScript

pytestmark = [pytest.mark.feature("scripts"), pytest.mark.long]
SEEDS = Path(__file__).resolve().parents[4] / "shared" / "seeds"
MNIST = SEEDS.parent / "mnist"

# After the post of 2016: the same model, flags, scopes, summaries and lines.
EXAMPLE = """
from __future__ import print_function
import tensorflow as tf
import sys
import time
parameter_servers = ["pc-01:2222"]
workers = ["pc-02:2222", "pc-03:2222", "pc-04:2222"]
cluster = tf.train.ClusterSpec({"ps": parameter_servers, "worker": workers})
tf.app.flags.DEFINE_string("job_name", "", "Either 'ps' or 'worker'")
tf.app.flags.DEFINE_integer("task_index", 0, "Index of task within the job")
FLAGS = tf.app.flags.FLAGS
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
training_epochs = 20
from tensorflow.examples.tutorials.mnist import input_data
mnist = input_data.read_data_sets('MNIST_data', one_hot=True)
if FLAGS.job_name == "ps":
  server.join()
elif FLAGS.job_name == "worker":
  with tf.device(tf.train.replica_device_setter(
      worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster)):
    global_step = tf.get_variable('global_step', [], initializer=tf.constant_initializer(0),
                                  trainable=False)
    with tf.name_scope('input'):
      x = tf.placeholder(tf.float32, shape=[None, 784], name="x-input")
      y_ = tf.placeholder(tf.float32, shape=[None, 10], name="y-input")
    tf.set_random_seed(1)
    with tf.name_scope("weights"):
      W1 = tf.Variable(tf.random_normal([784, 100]))
      W2 = tf.Variable(tf.random_normal([100, 10]))
    with tf.name_scope("biases"):
      b1 = tf.Variable(tf.zeros([100]))
      b2 = tf.Variable(tf.zeros([10]))
    with tf.name_scope("softmax"):
      a2 = tf.nn.sigmoid(tf.add(tf.matmul(x, W1), b1))
      y = tf.nn.softmax(tf.add(tf.matmul(a2, W2), b2))
    with tf.name_scope('cross_entropy'):
      entropy = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(y), reduction_indices=[1]))
    with tf.name_scope('train'):
      optimizer = tf.train.GradientDescentOptimizer(0.001)
      train_op = optimizer.minimize(entropy, global_step=global_step)
    with tf.name_scope('Accuracy'):
      right = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
      accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
    tf.scalar_summary("cost", entropy)
    tf.scalar_summary("accuracy", accuracy)
    summary_op = tf.merge_all_summaries()
    init_op = tf.initialize_all_variables()
    print("Variables initialized ...")
  sv = tf.train.Supervisor(is_chief=(FLAGS.task_index == 0), global_step=global_step,
                           init_op=init_op)
  begin = time.time()
  with sv.prepare_or_wait_for_session(server.target) as sess:
    writer = tf.train.SummaryWriter("logs", graph=tf.get_default_graph())
    last = time.time()
    for epoch in range(training_epochs):
      count = int(mnist.train.num_examples/100)
      for i in range(count):
        batch_x, batch_y = mnist.train.next_batch(100)
        _, cost, summary, step = sess.run([train_op, entropy, summary_op, global_step],
                                          feed_dict={x: batch_x, y_: batch_y})
        writer.add_summary(summary, step)
        if (i+1) % 100 == 0 or i+1 == count:
          took, last = time.time() - last, time.time()
          print("Step: %d," % (step+1), " Epoch: %2d," % (epoch+1),
                " Batch: %3d of %3d," % (i+1, count), " Cost: %.4f," % cost,
                " AvgTime: %3.2fms" % float(took*1000/100))
    images = {x: mnist.test.images, y_: mnist.test.labels}
    print("Test-Accuracy: %2.2f" % sess.run(accuracy, feed_dict=images))
    print("Total Time: %3.2fs" % float(time.time() - begin))
    print("Final Cost: %.4f" % cost)
  sv.stop()
  print("done")
"""


def cut(document: str, mark: str) -> str:
    """Returns the piece of code of a document that has `mark` in it."""
    text = (SEEDS / document).read_text(encoding="utf-8")
    (code,) = (c for c in re.findall(r"```(?:python)?\n(.*?)```", text, re.S) if mark in c)
    return str(code)


def lines_of(out: str, task: str) -> list[str]:
    prefix = f"[{task}] "
    return [line[len(prefix) :] for line in out.splitlines() if line.startswith(prefix)]


def example() -> str:
    """Returns the script of the document, if it is here."""
    return cut("002_a46b561314866cd9.txt", "training_epochs = 20") if SEEDS.exists() else EXAMPLE


def train_example(run_script: RunScript, data: Path, folder: Path) -> list[str]:
    """Runs it on one worker, with the data where it looks for them; returns the worker's lines."""
    (folder / "MNIST_data").symlink_to(data)
    ran = run_script(example(), name="example.py", options=("--cluster", "ps=1,worker=1"))
    assert ran.code == 0, ran.out + ran.err
    return lines_of(ran.out, "worker 0")


def assert_lines_are_those_of_2016(said: list[str], batches: int, lines_an_epoch: int) -> None:
    assert "Variables initialized ..." in said
    steps = [line for line in said if line.startswith("Step: ")]
    pattern = (
        rf"Step: \d+,  Epoch: [ \d]\d,  Batch: [ \d]{{3}} of {batches:3},  Cost: \d+\.\d{{4}},"
    )
    assert all(re.match(pattern, line) for line in steps), steps
    epochs = [int(line.split()[3].rstrip(",")) for line in steps]
    assert epochs == [epoch for epoch in range(1, 21) for _ in range(lines_an_epoch)]
    words = ["Test-Accuracy:", "Total Time:", "Final Cost:", "done"]
    assert [line.startswith(word) for line, word in zip(said[-4:], words)] == [True] * 4


def test_the_example_of_2016_is_one_command(
    run_script: RunScript, mnist_folder: Path, tmp_path: Path
) -> None:
    """The script as it is, on few images: 20 epochs of 10 batches."""
    said = train_example(run_script, mnist_folder, tmp_path)
    assert_lines_are_those_of_2016(said, batches=10, lines_an_epoch=1)
    steps = [line for line in said if line.startswith("Step: ")]
    assert re.match(r"Step: 1[01],  Epoch:  1,  Batch:  10 of  10,  Cost: ", steps[0])
    assert re.match(r"Step: 20[01],  Epoch: 20,  Batch:  10 of  10,  Cost: ", steps[-1])


@pytest.mark.slow
@pytest.mark.skipif(not SEEDS.exists(), reason="neither the documents nor their data are here")
def test_the_example_of_2016_is_as_accurate_as_it_was(
    run_script: RunScript, tmp_path: Path
) -> None:
    """The same on all of MNIST: 20 epochs of 550 batches."""
    said = train_example(run_script, MNIST, tmp_path)
    assert_lines_are_those_of_2016(said, batches=550, lines_an_epoch=6)
    assert abs(float(said[-4].split()[1]) - 0.42) <= 0.05


QUEUE = """
import tensorflow as tf
from multiprocessing import Process
from time import sleep
cluster = tf.train.ClusterSpec({"worker": ["localhost:2223", "localhost:2224"],
                                "ps": ["localhost:2225"]})
def parameter_server():
    with tf.device("/job:ps/task:0"):
        var = tf.Variable(0.0, name='var')
        q = tf.FIFOQueue(10, tf.float32, shared_name="shared_queue")
    server = tf.train.Server(cluster, job_name="ps", task_index=0)
    sess = tf.Session(target=server.target)
    sess.run(tf.report_uninitialized_variables())
    sess.run(tf.global_variables_initializer())
    while sess.run(q.size()) < 10:
        sleep(0.1)
    for j in range(sess.run(q.size())):
        print("ps: r", sess.run(q.dequeue()))
    print("Parameter server: ended...")
def worker(worker_n):
    with tf.device("/job:ps/task:0"):
        q = tf.FIFOQueue(10, tf.float32, shared_name="shared_queue")
    with tf.device(tf.train.replica_device_setter(
            worker_device='/job:worker/task:' + str(worker_n), cluster=cluster)):
        var = tf.Variable(0.0, name='var')
    server = tf.train.Server(cluster, job_name="worker", task_index=worker_n)
    sess = tf.Session(target=server.target)
    sess.run(tf.report_uninitialized_variables())
    while sess.run(tf.report_uninitialized_variables()):
        sleep(0.1)
    for i in range(5):
        sess.run(q.enqueue(sess.run(var.assign_add(1.0))))
    print("Worker %d: ended..." % worker_n)
    sleep(30)
ps_proc = Process(target=parameter_server, daemon=True)
processes = [Process(target=worker, args=(n,), daemon=True) for n in (0, 1)] + [ps_proc]
for proc in processes:
    proc.start()
ps_proc.join()
for proc in processes:
    proc.terminate()
print('All done.')
"""


def test_a_queue_shared_by_processes(run_script: RunScript) -> None:
    """Here `--local`: the ports that the script names may be taken."""
    code = QUEUE
    if SEEDS.exists():
        document = "004_89d81d99527e791a.txt"
        marks = ("cluster = tf.train", "def parameter_server", "def worker", "ps_proc = Process")
        parts = [cut(document, mark) for mark in marks]
        imports = "import tensorflow as tf\nfrom multiprocessing import Process\n"
        code = "\n".join([imports + "from time import sleep\n", *parts])
    ran = run_script(code, name="dist_tf.py", options=("--local",))
    assert ran.code == 0, ran.out + ran.err
    said = ran.out.splitlines()
    values = [float(line.split()[-1]) for line in said if line.startswith("ps: r")]
    # A worker adds one and then reads, so at the same moment two of them may read the same number.
    assert len(values) == 10
    assert set(values) <= {float(value) for value in range(1, 11)}
    assert max(values) == 10.0
    assert "Parameter server: ended..." in said
    assert said[-1] == "All done."
