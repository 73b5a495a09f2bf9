"""Seeds the random numbers of an experiment, so that the same `--seed` gives the same ones."""

from __future__ import annotations

import contextlib
import inspect
import random
import zlib
from typing import Any, Callable, Iterator, Mapping

from compat import tf, tf1


def seed_operations(seed: int, trainer: int) -> None:
    """Seeds operations without a seed, such as dropout, differently in each task that trains.

    The numbers are the same again only on the same runtime and release, since TensorFlow makes the
    seed of an operation from the number of operations before it.
    """
    tf1.set_random_seed((seed + 7919 * trainer) % 2**31)


@contextlib.contextmanager
def seeded_variables(seed: int) -> Iterator[None]:
    """Opens a scope in which `get_variable`, and layers that use it, draw values by seed and name.

    So a variable begins with the same values on both runtimes and all releases.
    """

    def get(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        if not args:  # Only a custom getter of the experiment gives arguments by position.
            kwargs = _seeded(seed, name, kwargs)
        return getter(name, *args, **kwargs)

    scope = tf1.get_variable_scope()
    with tf1.variable_scope(scope, custom_getter=get, auxiliary_name_scope=False):
        yield


@contextlib.contextmanager
def seeded_layers(seed: int) -> Iterator[None]:
    """Opens a scope in which layers of Keras 3 are given seeds by `seed` and their order.

    Keras takes them from Python's `random`, whose state is as before when the scope ends. So layers
    begin with the same values on both runtimes.
    """
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)


def _seeded(seed: int, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns arguments of `get_variable` with an initializer that draws by seed and name.

    An initializer that has a seed stays as it is. So does that of a partitioned variable, whose
    parts would all get the same values.
    """
    initializer: Any = arguments.get("initializer")
    if arguments.get("partitioner") is not None:
        return dict(arguments)
    if initializer is None and tf.as_dtype(arguments.get("dtype") or tf.float32).is_floating:
        initializer = tf1.glorot_uniform_initializer  # TensorFlow's default.
    if inspect.isclass(initializer):
        initializer = initializer()
    config = initializer.get_config() if hasattr(initializer, "get_config") else {}
    if config.get("seed", 0) is None:
        drawn = zlib.crc32(f"{seed} {name}".encode()) % 2**31
        initializer = type(initializer).from_config({**config, "seed": drawn})
    return {**arguments, "initializer": initializer}
