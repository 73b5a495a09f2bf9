"""TensorFlow's hooks and creators of monitored sessions, the same classes on either runtime.

They load TensorFlow when they are first used.
"""

from __future__ import annotations

from typing import Any

from compat._tensorflow import tf1


class _TrainClass:
    """A stand-in for a class of `tf.compat.v1.train`, in calls, subclasses and `isinstance`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _load(self) -> Any:
        return getattr(tf1.train, self._name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._load()(*args, **kwargs)

    def __mro_entries__(self, bases: Any) -> tuple[Any, ...]:
        return (self._load(),)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._load())

    def __subclasscheck__(self, subclass: Any) -> bool:
        if isinstance(subclass, _TrainClass):
            subclass = subclass._load()
        return issubclass(subclass, self._load())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Tools that inspect the module must not load TensorFlow.
            raise AttributeError(name)
        return getattr(self._load(), name)


CheckpointSaverHook: Any = _TrainClass("CheckpointSaverHook")
CheckpointSaverListener: Any = _TrainClass("CheckpointSaverListener")
ChiefSessionCreator: Any = _TrainClass("ChiefSessionCreator")
FinalOpsHook: Any = _TrainClass("FinalOpsHook")
GlobalStepWaiterHook: Any = _TrainClass("GlobalStepWaiterHook")
LoggingTensorHook: Any = _TrainClass("LoggingTensorHook")
NanTensorHook: Any = _TrainClass("NanTensorHook")
Scaffold: Any = _TrainClass("Scaffold")
SessionRunArgs: Any = _TrainClass("SessionRunArgs")
SessionRunHook: Any = _TrainClass("SessionRunHook")
StepCounterHook: Any = _TrainClass("StepCounterHook")
StopAtStepHook: Any = _TrainClass("StopAtStepHook")
SummarySaverHook: Any = _TrainClass("SummarySaverHook")
WorkerSessionCreator: Any = _TrainClass("WorkerSessionCreator")
