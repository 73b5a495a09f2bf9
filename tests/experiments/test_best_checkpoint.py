"""The folder of the best checkpoint, and a checkpoint that its writer may remove."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from experiments.evaluation import best_checkpoint

pytestmark = pytest.mark.once


def checkpoint(logdir: Path, step: int, content: str = "") -> str:
    """Writes files as a checkpoint has them; returns their prefix."""
    logdir.mkdir(exist_ok=True)
    prefix = logdir / f"model.ckpt-{step}"
    for suffix in ("index", "data-00000-of-00001"):
        Path(f"{prefix}.{suffix}").write_text(content or f"{suffix} of {step}")
    return str(prefix)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_best_checkpoint_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    folder = tmp_path / "best"
    for step in (10, 20):
        prefix = best_checkpoint.keep(checkpoint(tmp_path, step), str(folder))
        assert prefix == str(folder / f"model.ckpt-{step}")
        data = f"model.ckpt-{step}.data-00000-of-00001"
        assert files(folder) == ["checkpoint", data, f"model.ckpt-{step}.index"]
        assert (folder / data).read_text() == f"data-00000-of-00001 of {step}"
        assert (
            f'model_checkpoint_path: "model.ckpt-{step}"\n' in (folder / "checkpoint").read_text()
        )


@pytest.mark.parametrize("gone", ["index", "data-00000-of-00001"])
def test_best_checkpoint_stays_if_the_new_one_is_not_whole(tmp_path: Path, gone: str) -> None:
    folder = tmp_path / "best"
    best_checkpoint.keep(checkpoint(tmp_path, 10), str(folder))
    os.remove(f"{checkpoint(tmp_path, 20)}.{gone}")
    with pytest.raises(FileNotFoundError):
        best_checkpoint.keep(str(tmp_path / "model.ckpt-20"), str(folder))
    assert "model.ckpt-10" in (folder / "checkpoint").read_text()
    assert (folder / "model.ckpt-10.index").exists()


def test_best_checkpoint_has_nothing_else_and_leaves_the_users_files(tmp_path: Path) -> None:
    folder = tmp_path / "best"
    folder.mkdir()
    for name in ("model.ckpt-5.index", "model.ckpt-5.data-00000-of-00001.tmp", "notes.txt"):
        (folder / name).touch()
    best_checkpoint.keep(checkpoint(tmp_path, 10), str(folder))
    assert "notes.txt" in files(folder)
    assert not [name for name in files(folder) if "ckpt-5" in name]


def test_checkpoint_is_held_while_it_is_measured(tmp_path: Path) -> None:
    folder = tmp_path / "best"
    prefix = checkpoint(tmp_path, 10)
    (tmp_path / "being_evaluated").mkdir()
    (tmp_path / "being_evaluated" / "model.ckpt-5.index").touch()  # A killed process's.
    with best_checkpoint.held(prefix, str(tmp_path)) as held:
        for suffix in ("index", "data-00000-of-00001"):
            os.remove(f"{prefix}.{suffix}")
        assert len(files(tmp_path / "being_evaluated")) == 2
        best_checkpoint.keep(held, str(folder))
    assert (folder / "model.ckpt-10.index").read_text() == "index of 10"
    assert files(tmp_path) == ["best"]


def test_checkpoint_that_has_gone_is_not_held(tmp_path: Path) -> None:
    gone = best_checkpoint.held(str(tmp_path / "model.ckpt-10"), str(tmp_path))
    with pytest.raises(FileNotFoundError), gone:
        pass
    assert files(tmp_path) == []
