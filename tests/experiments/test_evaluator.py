"""The evaluator beside a training, and the chief that evaluates: what they record, how all end."""

from __future__ import annotations

import json
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from compat.cluster import ports

pytestmark = [pytest.mark.once, pytest.mark.endings, pytest.mark.slow]

# With such a rate nothing is learnt, so that the first evaluation remains the best.
STALLED = ["--learning_rate=1e-9", "--max_steps=1000000", "--summary_every=10"]
EVALUATOR = "--job_name=evaluator"
BY_HAND = [EVALUATOR, "--rendezvous_timeout=1"]
NO_SERVER = "http://me:hush@127.0.0.1:1"  # Nobody has that port.
TAGS = ["validation/cost", "validation/accuracy"]


def evaluations(logdir: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (logdir / "evaluations.jsonl").read_text().splitlines()]


def steps(logdir: Path) -> list[int]:
    return [int(evaluation["step"]) for evaluation in evaluations(logdir)]


def kept(logdir: Path) -> list[int]:
    """Returns the steps of the checkpoints that are whole in the folder of the best."""
    return [int(path.stem.split("-")[1]) for path in logdir.glob("best/*.index")]


def metrics(recorded: Any, names: str) -> list[tuple[str, int]]:
    query = f"select key, step from metrics where key like '{names}' order by step, key"
    return [(str(key), int(step)) for key, step in recorded.select(query)]


@pytest.fixture(scope="module")
def launched(train: Any, runtime: str) -> Any:
    flags = ["--strategy=ps", "--evaluator", "--early_stopping_patience=2", *STALLED]
    return train(*flags, "--checkpoint_every=50", f"--runtime={runtime}").wait()


@pytest.mark.cluster
def test_launched_tasks_all_end_well(launched: Any) -> None:
    assert launched.code == 0, launched.out
    assert launched.err == ""
    assert launched.left_running() == []


@pytest.mark.cluster
def test_chief_says_why_and_where_it_ends(launched: Any, record: Any) -> None:
    said = re.search(r"^\[worker 0\] early stopping at step (\d+): (.*)", launched.out, re.M)
    assert said, launched.out
    assert re.fullmatch(
        r"validation/accuracy did not improve on 0\.\d{4}, of step \d+, in 2 evaluations",
        said.group(2),
    )
    recorded = record(launched.logdir)
    assert recorded.run[1] == "FINISHED"
    tags = dict(recorded.select("select key, value from tags"))
    assert tags["early_stopping"] == f"at step {said.group(1)}: {said.group(2)}"
    assert int(said.group(1)) <= recorded.checkpoints[-1]
    assert "Test-Accuracy" in launched.out


@pytest.mark.cluster
def test_evaluations(launched: Any, record: Any) -> None:
    found = steps(launched.logdir)
    assert found == sorted(set(found))
    # The last checkpoint as well, whatever was passed over before.
    assert found[-1] == record(launched.logdir).checkpoints[-1]
    assert len(found) >= 3
    for step in found:
        line = rf"^\[evaluator 0\] Step: {step},  Validation-Cost: \d+\.\d{{4}},  Validation-"
        assert re.search(line, launched.out, re.M), launched.out
    assert "[evaluator 0] the training in" in launched.out


@pytest.mark.cluster
def test_record_is_a_folder_of_its_own_in_the_same_run(launched: Any, record: Any) -> None:
    found = steps(launched.logdir)
    points = record(launched.logdir / "eval").points
    tags = [*TAGS, "weights/first_layer"]  # The images of the hook, at each evaluation as well.
    pictures = [
        "confusion",
        "confusion/table",
        "misclassified",
        *(f"pr_curve/{i}" for i in range(10)),
    ]
    tags += [f"validation/{name}" for name in pictures]
    assert {tag: [step for step, _ in points[tag]] for tag in points} == dict.fromkeys(tags, found)
    expected = [(f"eval/{name}", step) for step in found for name in ("accuracy", "cost")]
    assert metrics(record(launched.logdir), "eval/%") == expected


@pytest.mark.cluster
def test_best_checkpoint_stays(launched: Any) -> None:
    best = max(
        evaluations(launched.logdir), key=lambda evaluation: evaluation["validation/accuracy"]
    )
    assert kept(launched.logdir) == [best["step"]]


@pytest.fixture(scope="module")
def legs(train: Any, runtime: str) -> list[Any]:
    """The same run with little patience, the same again, with more, and without any."""
    found: list[Any] = []
    for patience in (2, 2, 4, 0):
        logdir = found[-1].logdir if found else None
        flags = [
            "--eval_in_chief",
            *STALLED,
            f"--early_stopping_patience={patience}",
            f"--runtime={runtime}",
            *(["--max_steps=72"] if patience == 0 else []),
        ]
        found.append(train(*flags, logdir=logdir).wait())
    return found


def test_ends_when_none_gets_better(legs: list[Any], record: Any) -> None:
    assert [leg.code for leg in legs] == [0, 0, 0, 0], [leg.err for leg in legs]
    assert [leg.err for leg in legs] == ["", "", "", ""]
    ends = [re.findall("^early stopping at step ([0-9]+): ", leg.out, re.M) for leg in legs]
    assert ends == [["36"], ["36"], ["60"], []]
    assert record(legs[0].logdir).run[1] == "FINISHED"


def test_does_not_go_on_without_more_patience(legs: list[Any]) -> None:
    first, again, more, without = legs
    assert again.out.splitlines()[0] == (
        f"the run in {first.logdir} was stopped early, at step 36; give "
        "--early_stopping_patience=0 to resume it without early stopping, or one of more than 2, "
        "or another --logdir to start anew"
    )
    assert not re.search("^Step:", again.out, re.M)
    assert more.out.splitlines()[0] == f"resuming from step 36 in {first.logdir}"
    assert without.out.splitlines()[0] == f"resuming from step 60 in {first.logdir}"
    assert "\ndone\n" in without.out


def test_each_evaluation_has_its_checkpoint(legs: list[Any], record: Any) -> None:
    recorded = record(legs[0].logdir)
    found = steps(legs[0].logdir)
    assert found == [12, 24, 36, 48, 60, 72]
    assert recorded.checkpoints == found[-5:]
    assert kept(legs[0].logdir) == [12]
    for tag in TAGS:
        assert [step for step, _ in recorded.points[tag]] == [12, 24, 36, 48, 60, 72]


def test_the_best_checkpoint_is_tested_as_well(legs: list[Any], record: Any) -> None:
    points = record(legs[0].logdir).points
    for name in ("cost", "accuracy"):
        assert [step for step, _ in points[f"best_test/{name}"]] == [36, 60, 72]
        assert [step for step, _ in points[f"test/{name}"]] == [36, 60, 72]
    # Of the weights of step 12 each time.
    assert len({value.simple_value for _, value in points["best_test/cost"]}) == 1


@pytest.mark.cluster
def test_workers_that_update_together_end_together(train: Any, runtime: str) -> None:
    legacy, modern = ["--strategy=ps", "--sync"], ["--strategy=multi_worker"]
    flags = [*(legacy if runtime == "legacy" else modern), f"--runtime={runtime}", *STALLED]
    training = train(*flags, "--eval_in_chief", "--early_stopping_patience=1").wait()
    assert training.code == 0, training.out
    assert training.err == ""
    assert re.search(r"^\[worker 0\] early stopping at step ", training.out, re.M)
    assert training.left_running() == []


@pytest.fixture(scope="module")
def trained(locals_by_runtime: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Copies the log folder of a training that has ended, without what its chief has evaluated."""
    source = next(iter(locals_by_runtime.values())).logdir

    def copy() -> Path:
        target: Path = tmp_path_factory.mktemp("copy") / "log"
        shutil.copytree(str(source), str(target))
        (target / "evaluations.jsonl").unlink()
        shutil.rmtree(str(target / "best"))
        return target

    return copy


@pytest.fixture(scope="module")
def evaluators(train: Any, trained: Any, runtimes: list[str]) -> dict[str, Any]:
    torn, names = trained(), ("other model", *runtimes)
    data = next(torn.glob("model.ckpt-48.data*"))
    data.write_bytes(data.read_bytes()[:1000])
    flags = {
        "other model": ["--model=cnn"],
        **{name: [f"--runtime={name}"] for name in runtimes},
    }
    running = {name: train(*BY_HAND, *flags.get(name, []), logdir=trained()) for name in names}
    running["torn"] = train(*BY_HAND, logdir=torn)
    running["no server"] = train(*BY_HAND, f"--tracking_uri={NO_SERVER}", logdir=trained())
    found = {name: evaluator.wait() for name, evaluator in running.items()}
    found["whole"] = found[runtimes[0]]
    found["again"] = train(*BY_HAND, logdir=found["whole"].logdir).wait()
    return found


def test_the_last_checkpoint_is_evaluated(
    evaluators: dict[str, Any], runtime: str, record: Any
) -> None:
    evaluator = evaluators[runtime]
    assert (evaluator.code, evaluator.err) == (0, "")
    (found,) = evaluations(evaluator.logdir)
    assert found["step"] == 48
    # It is what the chief has measured at that step.
    points = record(evaluator.logdir).points
    for name in ("cost", "accuracy"):
        step, value = points[f"validation/{name}"][-1]
        assert step == 48
        assert found[f"validation/{name}"] == pytest.approx(value.simple_value, abs=1e-5)
    assert kept(evaluator.logdir) == [48]


def test_nothing_is_evaluated_twice(evaluators: dict[str, Any], record: Any) -> None:
    again = evaluators["again"]
    assert (again.code, again.err) == (0, "")
    assert again.out.splitlines()[1:] == [
        "the training is over; evaluating its last checkpoint, and waiting 1 s for a chief that "
        "goes on with it",
        f"the training in {again.logdir} is over",
    ]
    assert steps(again.logdir) == [48]
    assert [step for step, _ in record(again.logdir / "eval").points[TAGS[0]]] == [48]


def test_run_has_ended_as_before(evaluators: dict[str, Any], record: Any) -> None:
    recorded = record(evaluators["whole"].logdir)
    assert recorded.run[1] == "FINISHED"


def test_a_torn_checkpoint_is_passed_over(evaluators: dict[str, Any]) -> None:
    torn = evaluators["torn"]
    assert (torn.code, torn.err) == (0, "")
    assert len(re.findall("^passing over a checkpoint: ", torn.out, re.M)) == 1
    assert not (torn.logdir / "best").exists()


def test_a_dead_tracking_server_stops_nothing(evaluators: dict[str, Any]) -> None:
    alone = evaluators["no server"]
    assert (alone.code, alone.err) == (0, "")
    assert steps(alone.logdir) == [48]
    waiting = f"MLflow: 2 records were not delivered and wait in {alone.logdir}/eval/tracking.jsonl"
    assert waiting in alone.out
    assert "hush" not in alone.out


def test_another_model_is_said(evaluators: dict[str, Any]) -> None:
    other = evaluators["other model"]
    assert other.code == 2
    assert "is of another model" in other.err
    assert other.err.count("\n") == 1


def test_signals_end_it(start: Any, tmp_path: Path) -> None:
    expected = {signal.SIGTERM: 143, signal.SIGINT: 130}
    folders = {signum: tmp_path / signum.name for signum in expected}
    running = {
        signum: start(EVALUATOR, "--dataset=digits", logdir=folders[signum]) for signum in expected
    }
    for signum, evaluator in running.items():
        evaluator.wait_until_it_says("evaluates the checkpoints of .* as they come")
        evaluator.send(signum)
    codes = {signum: evaluator.wait().code for signum, evaluator in running.items()}
    assert codes == expected
    assert [evaluator.err for evaluator in running.values()] == ["", ""]
    assert not any(folder.exists() for folder in folders.values())


def test_a_chief_that_does_not_come_is_missed(start: Any, tmp_path: Path) -> None:
    with ports.reserve() as nobody:
        hosts = ["--ps_hosts=127.0.0.1:1", f"--worker_hosts={nobody.address}"]
    flags = [EVALUATOR, "--strategy=ps", *hosts, "--dataset=digits", "--rendezvous_timeout=2"]
    evaluator = start(*flags, logdir=tmp_path / "log").wait()
    assert evaluator.code == 138
    assert re.fullmatch(
        rf"error: no connection within 2 s to /job:worker/task:0 at {nobody.address}: refused.*\n",
        evaluator.err,
    )
