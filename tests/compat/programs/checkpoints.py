"""Writes, reads, breaks and rotates checkpoints; prints what was seen, by case."""

from __future__ import annotations

import contextlib
import io
import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

import compat
from compat import tf, tf1
from compat.checkpoint import files as checkpoint_files
from compat.checkpoint.io import CheckpointIO
from compat.runtime.interface import current_runtime

if TYPE_CHECKING:
    from tests.compat.programs.cases import case, checkpoints, fresh, refusal, run
else:
    from cases import case, checkpoints, fresh, refusal, run


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def model(**initial: Any) -> dict[str, Any]:
    """Makes a variable for each name, and the global step."""
    compat.get_or_create_global_step()
    with compat.device(None):
        return {
            name: tf.Variable(np.asarray(value, np.float32), name=name)
            for name, value in initial.items()
        }


def restored(folder: Path, **initial: Any) -> list[float]:
    """Opens a session on the log folder; returns the values and the global step."""
    variables = model(**initial)
    supervisor = compat.Supervisor(logdir=str(folder))
    with supervisor.managed_session() as session:
        values = session.read(variables)
        return [float(np.sum(v)) for _, v in sorted(values.items())] + [session.planned_step]


def written(folder: Path) -> str:
    """Writes a checkpoint of w = [1, 2] at step 7; returns its prefix."""
    prefix = str(folder / "model.ckpt-7")
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint_files.write(prefix, {"w": np.array([1, 2], np.float32), "global_step": np.int64(7)})
    tf1.train.update_checkpoint_state(str(folder), prefix, [prefix])
    return prefix


@case
def saver_of_tensorflow_reads_ours(folder: Path) -> Any:
    prefix = written(folder)
    with tf1.Graph().as_default():
        w = tf1.get_variable("w", [2], use_resource=True)
        step = tf1.train.get_or_create_global_step()
        with tf1.Session() as session:
            tf1.train.Saver().restore(session, prefix)
            return [session.run(w).tolist(), int(session.run(step))]


@case
def we_read_that_of_tensorflow(folder: Path) -> Any:
    with tf1.Graph().as_default():
        tf1.get_variable("w", initializer=np.array([1, 2], np.float32))
        step = tf1.train.get_or_create_global_step()
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(tf1.assign(step, 7))
            tf1.train.Saver().save(session, str(folder / "model.ckpt"), global_step=7)
    return restored(folder, w=[0, 0])


@case
def resumes(folder: Path) -> Any:
    written(folder)
    return restored(folder, w=[0, 0])


@case
def resumes_in_a_moved_folder(folder: Path) -> Any:
    written(folder)
    moved = folder.with_name("moved to")
    folder.rename(moved)
    return restored(moved, w=[0, 0])


@case
def a_copy_leaves_its_original_alone(folder: Path) -> Any:
    written(folder)
    copy = folder.with_name("copy")
    shutil.copytree(str(folder), str(copy))
    variables = model(w=[0, 0])
    supervisor = compat.Supervisor(logdir=str(copy), saver=compat.Saver(max_to_keep=1))
    with supervisor.managed_session() as session:
        session.assign(variables, {"w": np.array([5, 5], np.float32)})
        supervisor.saver.save(session, supervisor.save_path, global_step=8)
    return [files(folder), files(copy)]


@case
def starts_anew(folder: Path) -> Any:
    return restored(folder / "not there yet", w=[3, 4])


@case
def another_model(folder: Path) -> Any:
    prefix = written(folder)
    model(w=[1, 2, 3], v=[1])
    return refusal(lambda: compat.Supervisor(logdir=str(folder))).replace(prefix, "PREFIX")


@case
def another_dtype(folder: Path) -> Any:
    checkpoint_files.write(written(folder), {"w": np.float32([1, 2]), "global_step": np.float32(7)})
    model(w=[0, 0])
    return refusal(lambda: compat.Supervisor(logdir=str(folder)))


@case
def quite_another_model(folder: Path) -> Any:
    prefix = written(folder)
    _, saver = model(a=1, b=1, c=1, d=1), compat.Saver()
    with compat.Supervisor().managed_session() as session:
        return refusal(lambda: saver.restore(session, prefix))


def damaged(name: str, damage: Callable[[Path, Path], Any]) -> None:
    """Registers a case that damages a checkpoint, and returns what is said on resuming."""

    def broken(folder: Path) -> str:
        prefix = written(folder)
        damage(Path(prefix + ".data-00000-of-00001"), Path(prefix + ".index"))
        return refusal(lambda: restored(folder, w=[0, 0])).replace(str(folder), "FOLDER")

    broken.__name__ = name
    case(broken)


damaged("torn", lambda data, index: data.write_bytes(data.read_bytes()[:5]))
damaged("changed", lambda data, index: data.write_bytes(bytes(len(data.read_bytes()))))
damaged("without_data", lambda data, index: data.unlink())
damaged("without_index", lambda data, index: index.unlink())
damaged("garbage", lambda data, index: index.write_bytes(b"garbage\xff" * 20))
damaged("empty_index", lambda data, index: index.write_bytes(b""))
damaged(
    "garbage_for_a_list",
    lambda data, index: (index.parent / "checkpoint").write_bytes(b"\xff{\n" * 9),
)


@case
def torn_newest(folder: Path) -> Any:
    prefixes = [written(folder), str(folder / "model.ckpt-8"), str(folder / "model.ckpt-9")]
    for prefix in prefixes[1:]:
        shutil.copy(prefixes[0] + ".index", prefix + ".index")
        Path(prefix + ".data-00000-of-00001").write_bytes(b"torn")
    tf1.train.update_checkpoint_state(str(folder), prefixes[-1], prefixes)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        values = restored(folder, w=[0, 0])
    kept = [Path(prefix).name for prefix in CheckpointIO(str(folder)).history()]
    return [values, said.getvalue().replace(str(folder), "FOLDER"), kept]


@case
def removed(folder: Path) -> Any:
    """The remedy that the error names: without the newest, an earlier one is used."""
    old, new = written(folder), str(folder / "model.ckpt-9")
    tf1.train.update_checkpoint_state(str(folder), new, [old, new])
    return restored(folder, w=[0, 0])


@case
def not_finite(folder: Path) -> Any:
    variables = model(w=[0, 0], fine=[1])
    folder.mkdir()
    saver, said = compat.Saver(), []
    with compat.Supervisor().managed_session() as session:
        saver.save(session, str(folder / "model.ckpt"), global_step=1)
        before = files(folder)
        for value in (math.nan, math.inf):
            session.assign({"w": variables["w"]}, {"w": np.array([0, value], np.float32)})
            said.append(
                refusal(
                    lambda: saver.save(session, str(folder / "model.ckpt"), global_step=2),
                    compat.NotFiniteError,
                )
            )
    return [said, files(folder) == before, Path(saver.last_checkpoints[-1]).name]


@case
def rotates(folder: Path) -> Any:
    """Keeps two of four, and goes on counting after a restart; or keeps all."""
    kept = []
    for logdir, most in ((folder, 2), (folder, 2), (folder / "all", None)):
        fresh()
        model(w=[0])
        saver = compat.Saver(max_to_keep=most)
        supervisor = compat.Supervisor(logdir=str(logdir), saver=saver, save_model_secs=0)
        with supervisor.managed_session() as session:
            first = 1 + 10 * len(kept)
            for step in range(first, first + 3):
                saver.save(session, supervisor.save_path, global_step=step)
            saver.save(session, supervisor.save_path, global_step=first + 2)
            last = [Path(prefix).name for prefix in saver.last_checkpoints]
            kept.append([last, checkpoints(logdir)])
    return kept


@case
def names(folder: Path) -> Any:
    """Saves by number, by variable and without a step, in a folder that is made."""
    variables, saver = model(w=[0]), compat.Saver()
    only = compat.Saver(var_list=[variables["w"]])
    renamed = compat.Saver(var_list={"other": variables["w"]})
    with compat.Supervisor().managed_session() as session:
        steps = [3, np.int64(4), compat.get_or_create_global_step(), None]
        prefixes = [saver.save(session, str(folder / "a" / "b"), global_step=s) for s in steps]
        held = [
            sorted(checkpoint_files.read(s.save(session, prefixes[3]))) for s in (only, renamed)
        ]
    return [[str(Path(prefix).relative_to(folder)) for prefix in prefixes], held]


@case
def restores(folder: Path) -> Any:
    prefix = written(folder)
    variables, saver = model(w=[0, 0]), compat.Saver()
    with compat.Supervisor().managed_session() as session:
        saver.restore(session, prefix)
        values = session.read(variables)["w"].tolist()
        missing = refusal(lambda: saver.restore(session, str(folder / "model.ckpt-8")))
    return [values, missing.replace(str(folder), "FOLDER")]


@case
def made_anywhere(folder: Path) -> Any:
    compat.get_or_create_global_step()
    w = tf.Variable(np.float32([1, 2]), name="w")
    step = compat.step(lambda: {"sum": tf.reduce_sum(w)}, [])
    with compat.Supervisor(logdir=str(folder)).managed_session() as session:
        total = session.run(step)["sum"]
    return [total, sorted(checkpoint_files.read(str(folder / "model.ckpt-0")))]


def look_up(parts: int) -> compat.Step:
    """Makes a step of Adam on a table in some parts."""

    def cost(ids: Any) -> Any:
        table = tf1.get_variable(
            "table",
            [6, 4],
            initializer=tf1.ones_initializer(),
            partitioner=tf1.fixed_size_partitioner(parts),
        )
        rows = tf1.nn.embedding_lookup(table, ids, partition_strategy="div")
        cost = tf1.reduce_mean(tf1.square(rows))
        global_step = tf1.train.get_or_create_global_step()
        train = tf1.train.AdamOptimizer(0.1).minimize(cost, global_step=global_step)
        return {"cost": cost, "train": train}

    with compat.device(None):
        return compat.step(cost, [tf.TensorSpec([None], tf.int32)])


@case
def partitioned(folder: Path) -> Any:
    """Four steps in two parts; and two in two parts, then two in three parts."""
    costs = []
    for logdir, parts, count in (("whole", 2, 4), ("halves", 2, 2), ("halves", 3, 2)):
        fresh()
        step = look_up(parts)
        part = {"p": current_runtime().variables()[f"table/part_{parts - 1}"]}
        saver = compat.Saver(list(part.values()))
        with compat.Supervisor(logdir=str(folder / logdir)).managed_session() as session:
            costs += [session.run(step, np.int32([0, 5, 2]))["cost"] for _ in range(count)]
    prefix = str(folder / "halves" / "model.ckpt-4")
    ours = checkpoint_files.read(prefix)
    shapes = {name: value.shape for name, value in ours.items()}
    with tf1.Graph().as_default(), tf1.Session() as session:
        table = tf1.get_variable("table", [6, 4], use_resource=True)
        tf1.train.Saver([table]).restore(session, prefix)
        theirs = session.run(table)[5].tolist()
    with compat.Supervisor().managed_session() as session:
        before, saved = session.read(part), saver.save(session, str(folder / "part"))
        session.assign(part, {"p": 0 * before["p"]})
        saver.restore(session, saved)
        alone = session.read(part)["p"].tolist() == before["p"].tolist()
    return [costs[:4], costs[4:], shapes, theirs, ours["table"][5].tolist(), alone]


if __name__ == "__main__":
    run()
