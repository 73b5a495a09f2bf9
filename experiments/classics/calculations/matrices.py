"""Loads or draws the two square matrices whose powers are computed."""

from __future__ import annotations

import numpy as np

from compat.errors import UserError


def load(paths: dict[str, str | None], size: int | None, seed: int) -> dict[str, np.ndarray]:
    """Returns the matrices A and B, float64 `[size, size]`.

    `paths` are those of .npy files by flag, "matrix_a" and "matrix_b"; None is a random matrix,
    with entries in [0, 2 / size), so that the largest eigenvalue is about 1 and the powers neither
    overflow nor vanish. A `size` of None is that of the files, else 100.
    """
    given = {flag: _read(flag, path) for flag, path in paths.items() if path is not None}
    for flag, matrix in given.items():
        size = len(matrix) if size is None else size
        if len(matrix) != size:
            raise UserError(
                f"--{flag}={paths[flag]} has {len(matrix)} rows and columns, expected {size}; "
                "give --matrix_a, --matrix_b and --size of one size"
            )
    size = 100 if size is None else size
    random = np.random.RandomState(seed)
    drawn = {flag: random.uniform(0, 2 / size, [size, size]) for flag in paths}
    return {flag[-1].upper(): given.get(flag, drawn[flag]) for flag in paths}


def _read(flag: str, path: str) -> np.ndarray:
    given = f"--{flag}={path}"
    try:
        matrix = np.load(path, allow_pickle=False)
        if not isinstance(matrix, np.ndarray):
            raise ValueError("several arrays")
    except OSError as error:
        reason = error.strerror or "no .npy file"
        raise UserError(f"{given} cannot be read ({reason}); name a .npy file") from None
    except Exception:  # NumPy raises many kinds of errors for broken files.
        reason = "an array of numbers; write it with numpy.save"
        raise UserError(f"{given} is not a .npy file with {reason}") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        reason = "expected a square matrix; give one with as many rows as columns"
        raise UserError(f"{given} has shape {list(matrix.shape)}, {reason}")
    if matrix.dtype.kind not in "biuf":
        reason = "expected real numbers; save it as float64"
        raise UserError(f"{given} has elements of type {matrix.dtype}, {reason}")
    matrix = matrix.astype(np.float64)
    if not np.isfinite(matrix).all():
        raise UserError(f"{given} has elements that are not finite; replace them")
    return matrix
