"""`python -m compat prove`: equal programs are equal, and what differs is named."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Callable, NamedTuple

import numpy as np
import pytest

from compat.errors import UserError
from compat.scripts.commands import migrate
from compat.scripts.commands.prove import main
from compat.scripts.proving import comparison, migrated, operations, report, runs, values
from compat.scripts.proving.recorder import arrays
from compat.scripts.proving.sides import Side
from tests.compat.scripts.conftest import run_python

pytest.importorskip("asttokens")
pytest.importorskip("fissix")
ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "prove.md").read_text(encoding="utf-8")
(SCRIPT,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
EQUAL, DIFFERENT = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
DEADLINE_SECS = 120


class Proven(NamedTuple):
    """What `prove` printed and wrote for the script of the page, and its first run."""

    code: int
    out: str
    result: dict[str, object]
    page: str
    first: runs.Run


@pytest.fixture(scope="module")
def proven(tmp_path_factory: pytest.TempPathFactory) -> Proven:
    """Runs the first command of the page."""
    folder = tmp_path_factory.mktemp("prove")
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    options = ["--json=p.json", "--html=p.html", "--keep=kept"]
    done = run_python("-m", "compat", "prove", *options, "train.py", cwd=folder)
    assert done.stderr == ""
    side = Side("A", sys.executable, str(folder / "train.py"), "run", "compat run train.py")
    return Proven(
        done.returncode,
        done.stdout,
        json.loads((folder / "p.json").read_text(encoding="utf-8")),
        (folder / "p.html").read_text(encoding="utf-8"),
        runs.read(side, str(folder / "kept" / "A")),
    )


def prove_changed(first: runs.Run, path: Path, old: str, new: str) -> report.Proof:
    """Proves the script with a text replaced, against the run of the script itself."""
    assert old in SCRIPT
    path.write_text(SCRIPT.replace(old, new), encoding="utf-8")
    side = replace(first.side, name="B", script=str(path), says=path.name)
    options = {"steps": 3, "details": [1], "begun": runs.now(), "timeout": DEADLINE_SECS}
    second = runs.run(side, [], str(path.parent / "B"), replay=first, **options)  # type: ignore[arg-type]
    first = replace(first, calls=first.calls[:3])
    found = comparison.compare(first, second, comparison.RTOL)
    traced = operations.trace(first, second, found.cause) if found.cause else None
    return report.Proof(first, second, found, traced, comparison.RTOL)


def masked(text: str) -> list[str]:
    """Returns the lines without what depends on the release and the machine."""
    text = re.sub(r"TensorFlow [\d.]+", "TensorFlow", text)
    text = re.sub(r"-?\d[\d.]*(e-?\d+)?(?=[ ,;\n])", "#", text)
    return re.sub(r"\[\d+(, \d+)*\]", "[#]", text).splitlines()


@pytest.mark.once
def test_migrated_program_is_proven_equal(proven: Proven) -> None:
    assert proven.code == 0, proven.out
    assert masked(proven.out) == masked(EQUAL)
    losses = proven.result["losses"]
    assert isinstance(losses, list)
    assert proven.result["equal"] is True
    assert len(losses) == 20
    assert proven.result["notes"] == []
    assert losses[0]["a"] > losses[19]["a"]
    assert "equal: 20 losses of 20 training calls" in proven.page
    assert proven.page.count('<tr class="">') == 20
    assert not re.search("(src|href)=", proven.page)


@pytest.mark.once
def test_other_activation_is_named(proven: Proven, tmp_path: Path) -> None:
    proof = prove_changed(proven.first, tmp_path / "wrong.py", "tf.nn.relu", "tf.nn.tanh")
    lines = [*report.lines(proof)]
    assert lines[-1].startswith(
        "  first operation: hidden/Relu (Relu) in A, hidden/Tanh (Tanh) in B"
    )
    assert [line.partition(":")[0] for line in lines] == [
        line.partition(":")[0] for line in DIFFERENT.splitlines()
    ]
    assert proof.comparison.call == 1
    assert 'class="differ"' in report.as_page(proof)
    assert json.loads(report.as_json(proof))["equal"] is False


@pytest.mark.once
def test_other_epsilon_is_named_one_call_later(proven: Proven, tmp_path: Path) -> None:
    proof = prove_changed(proven.first, tmp_path / "wrong.py", "(0.01)", "(0.01, epsilon=1e-3)")
    assert (proof.comparison.call, proof.comparison.cause) == (2, 1)
    assert proof.trace is not None
    assert proof.trace.gradients == []
    assert proof.trace.operation == "Adam/epsilon (Const)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "operation"),
    [
        ("Optimizer(0.01)", "Optimizer(0.02)", "Adam/learning_rate (Const)"),
        ("AdamOptimizer", "RMSPropOptimizer", "(ApplyAdam) in A"),
        ("tf.square(output - y)", "tf.abs(output - y)", "Square (Square) in A, Abs (Abs) in B"),
    ],
)
def test_other_changes_are_named(
    proven: Proven, old: str, new: str, operation: str, tmp_path: Path
) -> None:
    proof = prove_changed(proven.first, tmp_path / "wrong.py", old, new)
    assert proof.trace is not None
    assert operation in proof.trace.operation


@pytest.mark.slow
def test_change_in_a_later_call_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text(SCRIPT, encoding="utf-8")
    later = "train = tf.train.AdamOptimizer(tf.where(tf.less(COUNT, 2.0), 0.01, 0.05))"
    text = SCRIPT.replace("train = tf.train.AdamOptimizer(0.01)", later)
    text = text.replace("COUNT", "count").replace(
        "loss = ", 'count = tf.placeholder("float")\nloss = '
    )
    Path("b.py").write_text(text.replace("{x: batch", "{count: step, x: batch"), encoding="utf-8")
    assert main(["--b=b.py", "a.py"]) == 1
    out = capsys.readouterr().out
    assert "not controlled: B feeds Placeholder:0, which A does not" in out
    assert "cause: training call 3, the first to change a variable differently" in out
    assert main(["--each", "--steps=4", "--b=b.py", "a.py"]) == 1
    out = capsys.readouterr().out
    assert "each training call of B begins with the variables of A" in out
    assert "differ: what training call 3 adds to variable " in out
    assert main(["--each", "--steps=4", "--b=a.py", "a.py"]) == 0


@pytest.mark.slow
def test_migrate_proves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SCRIPT, encoding="utf-8")
    assert migrate.main(["train.py", "--prove"]) == 0


WRONG: list[tuple[list[str], str]] = [
    ([], "no script was given"),
    (["nothing.py"], "script nothing.py is no file; name a Python script"),
    (["--steps=0", "train.py"], "--steps=0 is too small, expected 1 or more"),
    (["--a=nothing", "train.py"], "--a=nothing is no file; name a Python"),
    (["--b=data.txt", "train.py"], "data.txt has no line `tensorflow ==...`"),
    (["--b=data", "train.py"], "--b=data is not a program"),
    (["--keep=data", "train.py"], "--keep=data cannot be made"),
]


@pytest.mark.once
@pytest.mark.parametrize(("args", "message"), WRONG)
def test_wrong_usage_is_said(
    args: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "data.txt", "data"):
        (tmp_path / name).write_text("print(1)\n", encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(message)):
        main(args)


@pytest.mark.once
def test_program_that_does_not_train_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "try:\n    raise ValueError('no data')\nfinally:\n    print('then more')\n"
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="before its first training call: ValueError: no data"):
        main(["train.py"])


def test_modules_without_tensorflow_are_migrated_as_well(tmp_path: Path) -> None:
    script, module = tmp_path / "train.py", tmp_path / "sums.py"
    script.write_text("import sums\nimport tensorflow as tf\nprint(tf.__name__, sums.total(4))\n")
    module.write_text("def total(n):\n    return sum(xrange(n))\n")
    done = run_python(migrated.write(str(script), str(tmp_path / "new")), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "compat.v1 6\n"), done.stderr


@pytest.mark.once
def test_arrays_are_read_as_they_were_written(tmp_path: Path) -> None:
    texts = np.array([[b"a\0", "é".encode()], [b"", b"b"]], object)
    written = {"x/y:0": np.arange(6.0).reshape(2, 3), "empty": np.zeros([0]), "texts": texts}
    path = str(tmp_path / "a.npz")
    save: Callable[..., None] = arrays.save
    load: Callable[..., dict[str, np.ndarray]] = arrays.load  # type: ignore[type-arg]
    save(path, written)
    found = load(path)
    assert set(found) == set(written)
    assert all((found[name] == written[name]).all() for name in written)
    assert load(str(tmp_path / "b.npz")) == {}


@pytest.mark.once
@pytest.mark.parametrize(
    ("a", "b", "differs"),
    [
        (1.0, 1.0 + 5e-5, False),
        (1.0, 1.001, True),
        (float("nan"), float("nan"), False),
        (float("nan"), 1.0, True),
        (float("inf"), 1.0, True),
        (1e-9, 2e-9, False),  # Of losses that began at 1.
    ],
)
def test_numbers_differ_by_their_size(a: float, b: float, differs: bool) -> None:
    assert values.numbers(a, b, 1e-4, least=0.01).differs is differs
    gap = values.tensors([a, 1.0], [b, 1.0], 1e-4)
    assert gap is not None
    assert gap.differs is differs


@pytest.mark.once
def test_one_in_a_hundred_elements_may_differ() -> None:
    ours = np.where(np.arange(300) % 3, 0.1, 0.0)  # 200 changed.
    for count, few in ((2, True), (3, False)):
        theirs = ours.copy()
        theirs[1 : 3 * count : 3] = -0.1
        assert values.few_differ(ours, theirs, 1e-2) == few
    assert not values.few_differ(ours[:9], -ours[:9], 1e-2)
    assert not values.few_differ(ours[1], ours[0], 1e-2)


def test_arrays_of_other_shapes_are_not_compared() -> None:
    assert values.tensors([1.0], [1.0, 1.0], 1e-4) is None
    gap = values.tensors([[1.0, 2.0]], [[1.0, 4.0]], 1e-4)
    assert gap is not None
    assert (gap.a, gap.b, gap.place) == (2.0, 4.0, "[0, 1]")
