"""Uses savers as programs of TensorFlow 1.x do; prints what was seen, by case."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import compat
from compat import tf, tf1
from compat.checkpoint import files, pieces
from compat.runtime.interface import current_runtime

if TYPE_CHECKING:
    from tests.compat.programs.cases import case, checkpoints, fresh, refusal, run
else:
    from cases import case, checkpoints, fresh, refusal, run


class Counting(compat.Saver):
    """As a program may extend TensorFlow's."""

    def save(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the checkpoints there are by then, too."""
        return super().save(*args, **kwargs), len(self.last_checkpoints)


def weight() -> Any:
    return tf1.Variable(np.float32([1, 2]), name="w")


@case
def arguments(folder: Path) -> Any:
    w = weight()
    saver = compat.Saver([w], pad_step_number=True, save_relative_paths=True, sharded=False)
    counting = Counting({"v": w}, max_to_keep=1, name="mine")
    with compat.Supervisor().managed_session() as session:
        saver.save(session, str(folder / "a"), global_step=3, latest_filename="latest")
        counted = [counting.save(session, str(folder / n), write_state=n != "b")[1] for n in "bcd"]
    latest = tf1.train.latest_checkpoint(str(folder), "latest") or ""
    state = (folder / "latest").read_text("utf-8").splitlines()[0]
    is_one = [isinstance(counting, kind) for kind in (compat.Saver, tf1.train.Saver, Counting)]
    return [Path(latest).name, state, counted, checkpoints(folder), is_one]


@case
def graph(folder: Path) -> Any:
    """The graph beside the checkpoint is imported by TensorFlow, and is whole."""
    weight()
    saver = compat.Saver()
    with compat.Supervisor(logdir=str(folder / "logs")).managed_session() as session:
        prefix = saver.save(session, str(folder / "m"))
        exported = refusal(lambda: saver.export_meta_graph(str(folder / "n.meta")))
    own = sorted(path.name for path in (folder / "logs").glob("model.ckpt*"))
    with tf1.Graph().as_default(), tf1.Session() as session:
        imported = tf1.train.import_meta_graph(prefix + ".meta")
        imported.restore(session, prefix)
        return [exported, own, session.run("w/Read/ReadVariableOp:0").tolist()]


@case
def updated_while_saving(folder: Path) -> Any:
    """Another worker makes an update after each call of the session, or after every other one.

    So that the step that is read before saving is that of the last checkpoint.
    """
    weight()
    step = compat.get_or_create_global_step()
    update = tf1.assign_add(step, 1)
    saver = compat.Saver(max_to_keep=2)
    with compat.Supervisor().managed_session() as session:
        first, calls, every = session.run, itertools.count(), 1

        def late(call: Any) -> Any:
            def called(*args: Any, **kwargs: Any) -> Any:
                found = call(*args, **kwargs)
                if next(calls) % every == 0:
                    first(update)
                return found

            return called

        session.run, session.read = late(session.run), late(session.read)
        saved = [saver.save(session, str(folder / "m"), global_step=step) for _ in range(2)]
        calls, every = itertools.count(), 2
        saved += [saver.save(session, str(folder / "m"), global_step=step) for _ in range(4)]
    steps = [int(files.read(path)["global_step"]) for path in saved[-2:]]
    named = [int(path.rpartition("-")[2]) for path in saved[-2:]]
    kept = [Path(path).name for path in saver.last_checkpoints]
    metas = sorted(path.stem for path in folder.glob("*.meta"))
    return [named == steps, kept == checkpoints(folder), metas in ([], kept), len(kept)]


@case
def refusals(folder: Path) -> Any:
    """What TensorFlow raises as an error of Python is a line with a remedy."""
    weight()
    folder.mkdir()
    (folder / "file").touch()
    saver = compat.Saver()
    kinds = {"reshape": True, "write_version": tf1.train.SaverDef.V1}
    said = [refusal(lambda n=name, v=v: compat.Saver(**{n: v})) for name, v in kinds.items()]
    said.append(refusal(lambda: saver.save(None, str(folder / "m")), TypeError))
    with compat.Supervisor().managed_session() as session:
        said.append(refusal(lambda: saver.save(session, str(folder / "file" / "m"), 3)))
        said.append(refusal(lambda: saver.save(session, str(folder / "m"), latest_filename="a/b")))
        left = [path.name for path in folder.iterdir()]
    fresh()
    said.append(refusal(lambda: compat.Saver().save(None, str(folder / "m"))))
    return [[line.replace(str(folder), "FOLDER") for line in said], left]


def tables() -> tuple[Any, Any]:
    """Returns a step that reads some rows of two tables, one of them in parts, and a variable."""
    counter = compat.get_or_create_global_step()
    with compat.device(None):
        parts = tf1.get_variable(
            "parts", [50, 4], partitioner=tf1.fixed_size_partitioner(3), dtype=tf.float32
        )
        whole = tf1.get_variable("whole", [40, 4], dtype=tf.float32)

    def train(rows: Any) -> Any:
        found = [tf1.nn.embedding_lookup(t, rows, partition_strategy="div") for t in (parts, whole)]
        loss = tf.reduce_sum(tf.multiply(*found))
        update = tf1.train.AdagradOptimizer(0.1).minimize(loss, counter)
        return {"loss": loss, "update": update}

    return compat.step(train, [tf.TensorSpec([None], tf.int64)]), whole


@case
def in_pieces(folder: Path) -> Any:
    """What is larger than a piece is saved and restored by rows, and is as any other for readers.

    A value that is not finite is found in its last rows, when others are written.
    """
    made, left, refused = [], [], []
    most = pieces.PIECE_BYTES
    for pieces.PIECE_BYTES in (200, 300, most):
        fresh()
        step, whole = tables()
        supervisor = compat.Supervisor(logdir=str(folder), save_model_secs=0)
        with supervisor.managed_session() as session:
            made.append(session.planned_step)
            session.run(step, np.arange(0, 38, 2))
            prefix = supervisor.saver.save(session, supervisor.save_path, session.planned_step)
            variables = current_runtime().variables()
            first = {name: np.asarray(value) for name, value in session.read(variables).items()}
            before = sorted(path.name for path in folder.iterdir())
            broken = first["whole"].copy()
            broken[-1] = np.nan
            session.assign({"whole": whole}, {"whole": broken})
            save = functools.partial(supervisor.saver.save, session, str(folder / "n"))
            refused.append(refusal(save, compat.NotFiniteError))
            left.append(sorted(path.name for path in folder.iterdir()) == before)
        found = files.read(prefix)
        assert (found["parts/Adagrad"][1::2] == np.float32(0.1)).all()  # No batch has read these.
        assert found["parts"].shape == found["parts/Adagrad"].shape == (50, 4)
        for name, value in first.items():
            if "part_" not in name:
                assert (found[name] == value).all(), name
        for end in ("", "/Adagrad"):
            joined = np.concatenate([first[f"parts/part_{n}{end}"] for n in range(3)])
            assert (found["parts" + end] == joined).all(), end
    several = [len(list(folder.glob(f"model.ckpt-{n}.data-*"))) > 1 for n in (1, 2, 3)]
    return [made, several, left, refused]


@case
def in_pieces_of_each_server(folder: Path) -> Any:
    """The same of a saver that is `sharded`, in a folder that nothing else has made."""
    step, _ = tables()
    most, pieces.PIECE_BYTES = pieces.PIECE_BYTES, 200
    saver = compat.Saver(sharded=True)
    with compat.Supervisor(saver=saver).managed_session() as session:
        session.run(step, np.arange(0, 38, 2))
        prefix = saver.save(session, str(folder / "new" / "m"))
    pieces.PIECE_BYTES = most
    return files.read(prefix)["parts"].shape, [path.name for path in folder.iterdir()]


if __name__ == "__main__":
    run()
