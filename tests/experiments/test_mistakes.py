"""Ordinary mistakes in an experiment: the first line that a person sees, and the exit code.

Each is `programs/digits.py` with a few words replaced, run as a program; a test of its own would
say no more. What a right program beside these reaches is in `test_experiment` and `test_effects`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.conftest import Training

pytestmark = pytest.mark.once  # TensorFlow's words in some of the lines differ between releases.
PROGRAM = (Path(__file__).parent / "programs" / "digits.py").read_text()

RETURN = 'return split({"x": x.astype("float32") / 16, "y": y.astype("int32")}, 0.2, 0.2)'
LABELS = 'y.astype("int32")}'
OUTPUTS = 'return tf.reduce_mean(losses), {"labels": batch["y"], "predictions": logits}'
SLICES = "tf.data.Dataset.from_tensor_slices"
PARSED = '{"x": tf.io.FixedLenFeature([64], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64)}'
EXAMPLE = '{"x": tf.zeros([64]), "y": tf.zeros([], tf.int32)}'
BUILD = "    def build(self):"
SETTING = 'hidden: int = setting(16, "Hidden units.", at_least=1)'


def stream(dataset: str) -> tuple[str, str]:
    """Returns the edit by which the training split is a stream."""
    return RETURN, f'return {{"train": lambda worker, workers: {dataset}}}'


def layered(width: int) -> str:
    """Returns the text that makes layers of Keras which take examples of so many numbers."""
    layers = f"tf.keras.layers.InputLayer([{width}]), tf.keras.layers.Dense(10)"
    return f"tf.keras.Sequential([{layers}])"


# By name: what is replaced, by what, how the line begins (a regular expression), and the code.
MISTAKES: dict[str, tuple[str, str, str, int]] = {
    # The class and its settings.
    "no decorator": (
        "    @dataclass(frozen=True)\n",
        "",
        r"Settings is not a dataclass; write @dataclass\(frozen=True\) above the class",
        2,
    ),
    "not frozen": (
        "@dataclass(frozen=True)",
        "@dataclass",
        r"Digits.Settings is not frozen; write @dataclass\(frozen=True\) above the class",
        2,
    ),
    "no base": (
        "class Settings(Settings)",
        "class Settings",
        r"Digits.Settings has no base; write class Settings\(Settings\), of `from experiments ",
        2,
    ),
    "no help": (
        SETTING,
        "hidden: int = 16",
        r"setting 'hidden' of Settings has no help; write hidden: int = setting\(16, 'Help.'\)",
        2,
    ),
    "a list": (
        SETTING,
        'layers: list = setting([16, 8], "Layers.")',
        "setting 'layers' is annotated as list; write several values as one text, as in layers: ",
        2,
    ),
    "no super": (
        BUILD,
        f"    def __init__(self, settings):\n        self.table = {{}}\n\n{BUILD}",
        r"Digits.__init__ keeps no settings; begin it with super\(\).__init__\(settings\)",
        2,
    ),
    "an instance": (
        "run(Digits)",
        "run(Digits(Digits.Settings()))",
        r"run\(\) was given an instance of Digits; give the class: run\(Digits\)",
        2,
    ),
    "pairs of examples": (
        'tf.nn.sparse_softmax_cross_entropy_with_logits(labels=batch["y"], logits=logits)',
        '(batch["x"] @ self.w[:, :1] - tf.cast(batch["y"], tf.float32)) ** 2',
        r"digits.py:\d+, in loss: InvalidArgumentError: Sub of \[batch\] and \[batch, 1\] is ",
        1,
    ),
    "no run": (
        "run(Digits)",
        "Digits",
        r"digits.py defines Digits and does not run it; end the file with run\(Digits\), or use "
        "python -m experiments digits.py",
        2,
    ),
    "another name of data": (
        "def data",
        "def dataset",
        r"Digits has no data\(\); return a ",
        2,
    ),
    "another name of loss": ("def loss", "def step", r"Digits has no loss\(\); return a scalar", 2),
    "optimizer of Keras": (
        BUILD,
        f"    def optimizer(self, step):\n        return tf.keras.optimizers.SGD(0.1)\n\n{BUILD}",
        r"optimizer\(\) returned .*; return one of TensorFlow 1.x, such as tf1.train.AdamOptimizer",
        2,
    ),
    "monitor": (
        "validation/accuracy",
        "validation/acc",
        "monitor 'validation/acc' of Digits is not a value of an evaluation; set monitor to one of",
        2,
    ),
    "a list without setting()": (
        SETTING,
        "layers: list = [16, 8]",
        "setting 'layers' is annotated as list; write several values as one text, as in layers: ",
        2,
    ),
    "a default of another type": (
        SETTING,
        'hidden: int = setting("sixteen", "Hidden units.")',
        "setting 'hidden' of Settings has a wrong default: --hidden=sixteen is not an integer; giv",
        2,
    ),
    "a hook of Keras": (
        BUILD,
        f"    def on_epoch_end(self, run):\n        print(run.step)\n\n{BUILD}",
        r"Digits.on_epoch_end is no hook, so no run calls it; the hooks are on_end, on_evaluation",
        2,
    ),
    "a method of Lightning": (
        BUILD,
        f"    def configure_optimizers(self):\n        return None\n\n{BUILD}",
        "Digits.configure_optimizers is called by no run; name it optimizer",
        2,
    ),
    "loss without training": (
        "def loss(self, batch, training)",
        "def loss(self, batch)",
        r"Digits.loss\(self, batch\) is called with other arguments; write def loss\(self, batch, ",
        2,
    ),
    "an attribute in the place of a method": (
        "self.w = ",
        "self.loss = self.w = ",
        r"digits.py:\d+, in build: AttributeError: Digits.loss is a method; choose another name of",
        1,
    ),
    "metrics without a method": (
        'def metrics(self):\n        return {"accuracy": Accuracy()}',
        'metrics = {"accuracy": Accuracy()}',
        r"Digits.metrics is a dict; write def metrics\(self\)",
        2,
    ),
    "metrics that are a number": (
        'return {"accuracy": Accuracy()}',
        "return 0.5",
        r"metrics\(\) returned float; return a dict by name, such as {'accuracy': Accuracy\(\)}",
        2,
    ),
    "metric of Keras": (
        "Accuracy()}",
        "tf.keras.metrics.Accuracy()}",
        r"metric 'accuracy' of metrics\(\) is a Accuracy, which has no reset\(\); return one of ",
        2,
    ),
    "class of a metric": (
        "Accuracy()}",
        "Accuracy}",
        r"metric 'accuracy' of metrics\(\) is a class; return Accuracy\(\)",
        2,
    ),
    # The data.
    "data without return": (RETURN, RETURN[7:], r"data\(\) returned None; return a dict of spl", 2),
    "tuple of data": (
        RETURN,
        "return x, y",
        r"data\(\) returned a tuple; return a dict of splits, as split\({'x': x, 'y': y}\) does",
        2,
    ),
    "tuple to split": (
        RETURN,
        "return split((x, y))",
        r"split\(\) was given a tuple; name the arrays: split\({'x': x, 'y': y}\)",
        2,
    ),
    "tuple of a split": (
        RETURN,
        'return {"train": (x, y)}',
        r"split 'train' of data\(\) is a tuple; give a dict of arrays by name, as in {'x': x, ",
        2,
    ),
    "val": (
        RETURN,
        'return {"train": {"x": x}, "val": {"x": x}}',
        r"data\(\) returned a split 'val', which is unknown; call it 'validation'",
        2,
    ),
    "no training split": (
        RETURN,
        'return {"validation": {"x": x}}',
        r"data\(\) has no 'train' split; return one, as in {'train': {'x': x}}",
        2,
    ),
    "a stream of arrays": (
        *stream('{"x": x}'),
        r"split 'train' of data\(\) is a function that returned a dict; return a tf.data.Dataset o",
        2,
    ),
    "a stream without arguments": (
        RETURN,
        f'return {{"train": lambda: {SLICES}({{"x": x}}).batch(9)}}',
        r"split 'train' of data\(\) is a function of \(\); give it the arguments \(worker, workers",
        2,
    ),
    "a stream that is not batched": (
        *stream(f'{SLICES}({{"x": x.astype("float32"), "y": y}})'),
        r"digits.py:\d+, in loss: ValueError: .*; a split of tf.data is of batches: end it with \.",
        1,
    ),
    "an example to layers": (
        'batch["x"] @ self.w',
        layered(64) + '(batch["x"][0])',
        r"digits.py:\d+, in loss: ValueError: In.*; a split of tf.data is of batches: end it with",
        1,
    ),
    "another width to layers": (
        'batch["x"] @ self.w',
        layered(32) + '(batch["x"])',
        r"digits.py:\d+, in loss: ValueError: In.*\b32\b.*\b64\b",
        1,
    ),
    "no examples": (
        "x, y = load_digits(return_X_y=True)",
        "x, y = np.zeros([0, 64]), np.zeros(0)",
        r"the arrays of split\(\) have {'x': 0, 'y': 0} examples; give each the same number",
        2,
    ),
    "lengths": (
        LABELS,
        'y[:-5].astype("int32")}',
        r"the arrays of split\(\) have {'x': 1797, 'y': 1792} examples; give each the same number",
        2,
    ),
    "a dataset itself": (
        RETURN,
        f'return {{"train": {SLICES}({{"x": x}}).batch(9)}}',
        r"split 'train' of data\(\) is a \w+; give .*a function of \(worker, number of workers\)",
        2,
    ),
    "a file that is not there": (
        RETURN,
        'return np.load("digits.npz")',
        r"digits.py:\d+, in data: FileNotFoundError: \[Errno 2\] No such file or directory: 'dig",
        1,
    ),
    "a pattern without a match": (
        *stream(
            "tf.data.TFRecordDataset([] * len(x) or tf.zeros([0], tf.string))"
            f".batch(10).map(lambda each: tf.io.parse_example(each, {PARSED}))"
        ),
        "the training stream has no batch for worker 0: a pattern of its files matches none, or ",
        2,
    ),
    "a stream of a file that is not there": (
        *stream(f'tf.data.TextLineDataset("digits.csv").map(lambda line: {EXAMPLE}).batch(9)'),
        r"in a stream of data\(\): NotFoundError: digits.csv; No such file or directory$",
        1,
    ),
    "a stream of unequal lengths": (
        *stream(f"tf.data.Dataset.range(9).map(lambda n: {EXAMPLE.replace('[', '[n, ')}).batch(9)"),
        r"in a stream of data\(\): InvalidArgumentError: Cannot .*; dataset.padded_batch fills up",
        1,
    ),
    "stream of tuples": (
        *stream(f'{SLICES}((x.astype("float32"), y.astype("int32"))).batch(100)'),
        r"digits.py:\d+, in loss: TypeError: tuple indices must be integers .*; batch is a tuple: "
        r"name what the dataset has, as by map\(lambda x, y: {'x': x, 'y': y}\)",
        1,
    ),
    "stream of tensors": (
        *stream(f'{SLICES}(x.astype("float32")).batch(100)'),
        r"digits.py:\d+, in loss: TypeError: .*; batch is a tensor: name what the dataset has, as "
        r"by map\(lambda x: {'x': x}\)",
        1,
    ),
    # The loss and the metrics.
    "loss without return": (
        OUTPUTS,
        OUTPUTS[7:],
        r"loss\(\) returned None; return a floating-",
        2,
    ),
    "a loss of each example": (
        "tf.reduce_mean(losses), ",
        "losses, ",
        r"loss\(\) returned shape \(100,\) and float32; return a floating-point scalar",
        2,
    ),
    "name of an array": (
        'batch["x"]',
        'batch["image"]',
        r"digits.py:\d+, in loss: KeyError: 'image'; batch has x, y$",
        1,
    ),
    "name of an output": (
        "Accuracy()",
        'Accuracy("label")',
        "Accuracy reads output 'label', but the step returns labels, loss, predictions; return it",
        2,
    ),
    "shapes": (
        "[64, 10]",
        "[32, 10]",
        r"digits.py:\d+, in loss: ValueError: Dimensions must be equal, but are 64 and 32",
        1,
    ),
    "float64": (
        'x.astype("float32") / 16',
        "x / 16",
        r"digits.py:\d+, in loss: TypeError: .*float64.*; give arrays of float32, as of array.asty",
        1,
    ),
    "images that are not cast": (
        'x.astype("float32") / 16',
        'x.astype("uint8")',
        r"digits.py:\d+, in loss: TypeError: .*uint8.*; cast one of them by tf.cast",
        1,
    ),
    "labels with a dimension more": (
        LABELS,
        'y.astype("int32")[:, None]}',
        r"digits.py:\d+, in loss: ValueError: .*; class ids are \[batch\]: tf.squeeze\(labels, 1\)",
        1,
    ),
    "labels that are floats": (
        LABELS,
        'y.astype("float32")}',
        r"digits.py:\d+, in loss: TypeError: .*; class ids are integers, as of array.astype\('int3",
        1,
    ),
    "labels that are text": (
        LABELS,
        "y.astype(str)}",
        r"digits.py:\d+, in loss: TypeError: .*; number the labels, as by numpy.unique\(return_inv",
        1,
    ),
    "a label out of range": (
        LABELS,
        'y.astype("int32") + 1}',
        r"digits.py:\d+, in loss: InvalidArgumentError: .*label.*; labels are from 0 to the number",
        1,
    ),
    "numpy of a tensor": (
        OUTPUTS,
        f'print("loss", losses.numpy())\n        {OUTPUTS}',
        r"digits.py:\d+, in loss: AttributeError: .*'numpy'; a tensor has its value when the graph",
        1,
    ),
    "log of Lightning": (
        OUTPUTS,
        f'self.log("loss", losses)\n        {OUTPUTS}',
        r"digits.py:\d+, in loss: AttributeError: .* 'log'; return scalars among the outputs of lo",
        1,
    ),
    "NumPy of a tensor": (
        OUTPUTS,
        f"print(np.mean(losses))\n        {OUTPUTS}",
        r"digits.py:\d+, in loss: NotImplementedError: .*; a tensor has its value .* a metric of m",
        1,
    ),
    "if of a tensor": (
        OUTPUTS,
        f"if tf.reduce_mean(losses) > 5:\n            losses *= 0.5\n        {OUTPUTS}",
        r"digits.py:\d+, in loss: \w+Error: .* is not allowed.*; a tensor has its .*tf.where",
        1,
    ),
    "no variable": (
        'tf.Variable(np.zeros([64, 10], "float32"), name="w")',
        'np.zeros([64, 10], "float32")',
        "the loss depends on no trainable variable, so nothing can be trained; make it from varia",
        2,
    ),
    "a logarithm": (
        "tf.reduce_mean(losses), ",
        "tf.reduce_mean(tf.math.log(losses - 2.4)), ",
        r"loss is nan at step \d+, .* lower --learning_rate=0.001, or see by --check_numerics ",
        1,
    ),
    "a hook": (
        BUILD,
        f'    def on_step(self, run, values):\n        print(values["cost"])\n\n{BUILD}',
        r"digits.py:\d+, in on_step: KeyError: 'cost'; values has ",
        1,
    ),
    "a model in a hook": (
        BUILD,
        f"    def on_step(self, run, values):\n        tf.nn.softmax(self.w)\n\n{BUILD}",
        r"digits.py:\d+, in on_step: RuntimeError: Graph is finalized .*; a run's graph is co",
        1,
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line(
    mistake: str, tmp_path: Path, start_program: Any, empty_store: Path
) -> None:
    before, after, line, code = MISTAKES[mistake]
    assert before in PROGRAM
    (tmp_path / "digits.py").write_text(PROGRAM.replace(before, after))
    (tmp_path / empty_store.name).write_bytes(empty_store.read_bytes())
    argv = [sys.executable, "digits.py", "--logdir=logs", "--system_metrics_every=0"]
    env = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = Training(argv, tmp_path, None, env, start_program).wait()
    first, *frames = done.err.splitlines()
    assert re.match(f"error: {line}", first), done.err
    assert done.code == code
    # The frames are those of the file, which the last line says how to see all of.
    has_frames = first.startswith(("error: digits.py:", "error: in a stream of data():"))
    assert bool(frames) == has_frames, done.err
    assert not frames or frames[-1] == "--traceback shows all frames"
    assert all("digits.py" in f for f in frames if f.startswith("  File")), done.err


@pytest.mark.parametrize("runtime", ["legacy", "modern"])
@pytest.mark.parametrize(
    ("cost", "said"),
    [
        ("tf.math.log(masked - 0.1)", "Log]"),
        ("tf.sqrt(masked * 0.0)", "Sqrt, in its gradient]"),
    ],
)
def test_the_first_operation_that_makes_nan_is_named(
    runtime: str, cost: str, said: str, tmp_path: Path, start_program: Any, empty_store: Path
) -> None:
    """A mask of -inf, as many losses have, is not at fault."""
    masked = "tf.where(logits > -1.0, tf.nn.softmax(logits), tf.fill(tf.shape(logits), -np.inf))"
    lines = "\n        ".join([f"masked = {masked}", f"extra = {cost}", OUTPUTS])
    text = PROGRAM.replace(OUTPUTS, lines)
    text = text.replace("reduce_mean(losses), {", "reduce_mean(losses) + tf.reduce_mean(extra), {")
    (tmp_path / "digits.py").write_text(text)
    (tmp_path / empty_store.name).write_bytes(empty_store.read_bytes())
    flags = ["--check_numerics", f"--runtime={runtime}", "--logdir=logs"]
    argv = [sys.executable, "digits.py", *flags, "--system_metrics_every=0"]
    done = Training(argv, tmp_path, None, {"TF_CPP_MIN_LOG_LEVEL": "3"}, start_program).wait()
    line = 1 + next(n for n, text in enumerate(text.splitlines()) if "extra = " in text)
    head = f"error: digits.py:{line}, in loss: InvalidArgumentError: assertion failed: ["
    assert done.err.startswith(f"{head}the first value that is NaN or infinite is made by "), done
    assert done.err.splitlines()[0].endswith(said), done.err
    assert done.code == 1


def test_a_file_that_forgets_run_is_run_by_the_package(
    tmp_path: Path, start_program: Any, empty_store: Path
) -> None:
    (tmp_path / "digits.py").write_text(
        '"""Digits."""\n' + PROGRAM.replace("run(Digits)", "Digits")
    )
    (tmp_path / empty_store.name).write_bytes(empty_store.read_bytes())
    argv = [sys.executable, "-m", "experiments", "digits.py"]

    def run(*flags: str) -> Training:
        env = {"TF_CPP_MIN_LOG_LEVEL": "3"}
        return Training([*argv, *flags], tmp_path, None, env, start_program).wait()

    assert "Digits.\n\nflags:\n\nof this experiment:\n  --hidden=16 " in run("--help").out
    refused = run("--hidden=0")
    assert (refused.code, refused.err) == (2, "error: --hidden=0 is too small; give 1 or more\n")
    # Its tasks are started by the same command.
    done = run("--strategy=ps", "--epochs=1", "--logdir=logs", "--system_metrics_every=0")
    assert (done.code, done.err) == (0, ""), done.out
    assert re.search(r"(?m)^\[worker 0\] Test-Accuracy: 0\.[1-9]", done.out)
    assert '"digits.py"' not in (tmp_path / "logs" / "program.json").read_text()
    assert '/digits.py"' in (tmp_path / "logs" / "program.json").read_text()


@pytest.mark.parametrize(
    ("program", "text", "line"),
    [
        ("digits.py", PROGRAM.replace("run(Digits)", "raise SystemExit(3)"), "digits.py defines"),
        ("nothing.py", None, "program nothing.py is not a file; correct the path of the script"),
        (
            "two.py",
            PROGRAM.replace("run(Digits)", "pass") + "\n\nclass Other(Digits):\n    pass\n",
            "program two.py defines 2 subclasses of Experiment, expected one; name a program such ",
        ),
    ],
)
def test_a_file_that_cannot_be_run_is_one_line(
    tmp_path: Path, start_program: Any, program: str, text: str | None, line: str
) -> None:
    if text is not None:
        (tmp_path / program).write_text(text)
    argv = [sys.executable, "-m", "experiments", program]
    done = Training(argv, tmp_path, None, {}, start_program).wait()
    assert done.code == 2
    assert done.err.startswith(f"error: {line}")
    assert len(done.err.splitlines()) == 1
