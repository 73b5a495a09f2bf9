"""Uses savers as programs of TensorFlow 1.x do; prints what was seen, by case."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import compat
from compat import tf1
from compat.checkpoint import files

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
    if not Path(prefix + ".meta").exists():
        return [exported, own, None]
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
    update = tf1.assign_add(step, 1) if not tf1.executing_eagerly() else None
    saver = compat.Saver(max_to_keep=2)
    with compat.Supervisor().managed_session() as session:
        first, calls, every = session.run, itertools.count(), 1

        def late(call: Any) -> Any:
            def called(*args: Any, **kwargs: Any) -> Any:
                found = call(*args, **kwargs)
                if next(calls) % every == 0:
                    step.assign_add(1) if update is None else first(update)
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


if __name__ == "__main__":
    run()
