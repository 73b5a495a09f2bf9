"""`tf.contrib.eager`: gradients of functions, from before `tf.GradientTape`."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from compat._tensorflow import tf, tf1

in_eager_mode = tf.executing_eagerly
run = tf1.app.run


def Iterator(dataset: Any) -> Any:
    """Returns an iterator of a dataset's elements."""
    return iter(dataset)


def num_gpus() -> int:
    """Returns how many GPUs there are."""
    return len(tf.config.list_physical_devices("GPU"))


def list_devices() -> list[str]:
    """Returns the names of the devices."""
    return [device.name for device in tf.config.list_logical_devices()]


def get_optimizer_variables(optimizer: Any) -> list[Any]:
    """Returns the variables of an optimizer."""
    return list(optimizer.variables())


def value_and_gradients_function(
    f: Callable[..., Any], params: Sequence[int | str] | None = None
) -> Callable[..., Any]:
    """Returns a function that returns f's value, and its gradients by its arguments.

    Args:
      f: Takes and returns tensors.
      params: The positions of the arguments, or their names; all if None.
    """
    code = getattr(f, "__code__", None)

    def gradients(*args: Any, dy: Any = None) -> tuple[Any, list[Any]]:
        tensors = [tf.convert_to_tensor(argument) for argument in args]
        chosen = range(len(tensors)) if params is None else params
        names = list(code.co_varnames) if code is not None else []
        numbers = [names.index(one) if isinstance(one, str) else one for one in chosen]
        sources = [tensors[number] for number in numbers]
        with tf.GradientTape() as tape:
            for source in sources:
                tape.watch(source)
            value = f(*tensors)
        return value, tape.gradient(value, sources, output_gradients=dy)

    return gradients


def gradients_function(
    f: Callable[..., Any], params: Sequence[int | str] | None = None
) -> Callable[..., Any]:
    """Returns a function that returns the gradients of f by its arguments."""
    both = value_and_gradients_function(f, params)
    return lambda *args, dy=None: both(*args, dy=dy)[1]


def implicit_value_and_gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that returns f's value, and pairs of gradient and variable.

    The variables are those trainable ones that f reads; the function raises a ValueError if
    there are none.
    """

    def gradients(*args: Any, **kwargs: Any) -> tuple[Any, list[tuple[Any, Any]]]:
        with tf.GradientTape() as tape:
            value = f(*args, **kwargs)
        variables = tape.watched_variables()
        if not variables:
            raise ValueError("no trainable variable was read; call it with a function of variables")
        return value, list(zip(tape.gradient(value, variables), variables))

    return gradients


def implicit_gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that returns pairs of gradient and variable."""
    both = implicit_value_and_gradients(f)
    return lambda *args, **kwargs: both(*args, **kwargs)[1]


class Saver:
    """Saves variables that have names.

    Args:
      var_list: The variables, or a dict of them by name.
    """

    def __init__(self, var_list: Any) -> None:
        self._saver = tf1.train.Saver(var_list)

    def save(self, file_prefix: str, global_step: Any = None) -> str:
        """Writes a checkpoint; returns its path."""
        return str(self._saver.save(None, file_prefix, global_step=global_step))

    def restore(self, file_prefix: str) -> None:
        """Reads the variables of a checkpoint."""
        self._saver.restore(None, file_prefix)
