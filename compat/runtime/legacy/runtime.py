"""The legacy runtime: sessions of `tf.compat.v1` run everything, from TensorFlow 1.15 on."""

from __future__ import annotations

from compat.runtime.interface import Runtime
from compat.runtime.program.runtime import ProgramRuntime, build_graphs


def create() -> Runtime:
    """Returns the runtime; from here on this process builds graphs."""
    build_graphs()
    return LegacyRuntime()


class LegacyRuntime(ProgramRuntime):
    """Runs a program as TensorFlow 1.x did."""

    name = "legacy"
