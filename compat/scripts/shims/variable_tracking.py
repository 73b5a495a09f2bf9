"""`tf.compat.v1.keras.utils.track_tf1_style_variables`, for `tf.Module` and for layers of Keras 3.

TensorFlow has it in Keras 2 only. A decorated method creates its variables by
`tf.compat.v1.get_variable`, once, and they belong to the module or the layer.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
from typing import Any, Callable, Iterator

from compat._tensorflow import private, tf, tf1
from compat.errors import UserError, UserTypeError

_STORE = "_tf1_style_var_store"


class VariableStore:
    """The variables of one module by name, in the form that `with_variable_store` expects.

    An existing variable is always used again, whatever `reuse` is; only `reuse=True` requires that
    it exists.
    """

    _store_eager_variables = True  # TensorFlow reads this attribute.

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._vars: dict[str, Any] = {}
        self._layers: dict[str, Any] = {}
        self._regularizers: dict[str, Callable[[], Any]] = {}

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Makes `get_variable` use this store."""
        with private.with_variable_store(self):
            yield

    def get_variable(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Returns the variable of this name; the arguments are those of TensorFlow's function."""
        getter = kwargs.pop("custom_getter", None)
        kwargs.setdefault("reuse", None)
        if getter is None:
            return self._get(name, *args, **kwargs)
        return getter(self._get, name, *args, **kwargs)

    def get_or_create_layer(self, name: str, create: Callable[[], Any]) -> Any:
        """Returns the layer of this name."""
        if name not in self._layers:
            self._layers[name] = layer = create()
            _attach(self._owner, f"_tf1_layer_{len(self._layers)}", layer)
        return self._layers[name]

    def _get(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        trainable: bool | None = None,
        partitioner: Any = None,
        constraint: Any = None,
        synchronization: Any = None,
        aggregation: Any = None,
        **others: Any,
    ) -> Any:
        if partitioner is not None:
            raise UserError(f"variable {name} has a partitioner, which is for graphs; remove it")
        dtype = tf1.as_dtype(dtype or tf1.float32).base_dtype
        shape = tf1.TensorShape(shape)
        if name in self._vars:
            return _shared(self._vars[name], name, shape, dtype)
        if reuse is True:
            raise UserError(f"variable {name} does not exist; create it without reuse=True")
        if initializer is None:
            kind = tf1.glorot_uniform_initializer if dtype.is_floating else tf1.zeros_initializer
            initializer = kind()
        with tf.init_scope():
            if inspect.isclass(initializer):
                initializer = initializer()
            value, kind = initializer, None
            if callable(initializer) and shape.is_fully_defined():
                value = functools.partial(initializer, shape.as_list(), dtype=dtype)
                kind = dtype
            sync = synchronization or tf.VariableSynchronization.AUTO
            variable = tf.Variable(
                value,
                name=name,
                trainable=sync != tf.VariableSynchronization.ON_READ
                if trainable is None
                else trainable,
                dtype=kind,
                constraint=constraint,
                synchronization=sync,
                aggregation=aggregation or tf.VariableAggregation.NONE,
            )
        self._vars[name] = variable
        if regularizer is not None:
            self._regularizers[variable.name] = functools.partial(regularizer, variable)
        _attach(self._owner, f"_tf1_variable_{len(self._vars)}", variable, regularizer)
        return variable


def track_tf1_style_variables(method: Any) -> Any:
    """Decorates a method of a `tf.Module` or of a layer of Keras 3.

    A layer has the losses of the regularizers in `losses`, together with those of its own weights.
    A module has them in `_tf1_style_var_store._regularizers`, as functions.
    """

    @functools.wraps(method)
    def tracked(self: Any, *args: Any, **kwargs: Any) -> Any:
        store = getattr(self, _STORE, None)
        if store is None:
            if not (isinstance(self, tf.Module) or _is_keras_3(self)):
                raise UserTypeError(
                    f"track_tf1_style_variables decorates a method of {type(self).__name__}; "
                    "decorate one of a tf.Module or of a layer of Keras"
                )
            store = VariableStore(self)
            object.__setattr__(self, _STORE, store)
        with store.scope():
            return method(self, *args, **kwargs)

    return tracked


def get_or_create_layer(name: str, create_layer_method: Callable[[], Any]) -> Any:
    """Returns a layer of the module whose decorated method runs, by name; creates it once."""
    store = private.current_variable_store()
    if isinstance(store, VariableStore):
        scope = tf1.get_variable_scope().name
        return store.get_or_create_layer(f"{scope}/{name}", create_layer_method)
    if tf1.executing_eagerly_outside_functions():
        raise UserError(
            f"get_or_create_layer({name!r}) is called outside of a method that "
            "track_tf1_style_variables decorates; decorate the method that calls it"
        )
    return create_layer_method()


def _shared(variable: Any, name: str, shape: Any, dtype: Any) -> Any:
    for what, expected, actual in (
        ("shape", shape, variable.shape),
        ("dtype", dtype, variable.dtype),
    ):
        if not expected.is_compatible_with(actual):
            raise UserError(
                f"variable {name} has {what} {actual}, and {expected} was given; "
                "give the same, or another name"
            )
    return variable


def _attach(owner: Any, attribute: str, value: Any, regularizer: Any = None) -> None:
    """Attaches a variable or a layer to its owner, for `trainable_variables` and checkpoints."""
    if not _is_keras_3(owner):
        setattr(owner, attribute, value)
        return
    # Keras locks the state of a layer once it is built, which is before the first call.
    owner._tracker.unlock()
    try:
        if isinstance(value, tf.Variable):
            owner._track_variable(_keras_variable(value, regularizer))
        else:
            setattr(owner, attribute, value)
    finally:
        owner._tracker.lock()


def _keras_variable(variable: Any, regularizer: Any) -> Any:
    """Returns a variable of Keras 3 that has the given variable as its value."""
    keras: Any = importlib.import_module("keras")
    state: Any = importlib.import_module("keras.src.backend.common.global_state")
    name = variable.name.partition(":")[0].replace("/", "_")
    # Keras creates no variables while it computes shapes, as before `fit`.
    scope = state.get_global_attribute("stateless_scope")
    state.set_global_attribute("stateless_scope", None)
    try:
        with tf.init_scope():
            dtype = variable.dtype.name
            keras_variable = keras.Variable(
                variable, dtype=dtype, trainable=variable.trainable, name=name
            )
    finally:
        state.set_global_attribute("stateless_scope", scope)
    keras_variable._value = variable  # Keras has made a copy; replace it by the variable itself.
    keras_variable.regularizer = regularizer
    return keras_variable


def _is_keras_3(value: Any) -> bool:
    return hasattr(value, "_tracker") and hasattr(value, "_track_variable")
