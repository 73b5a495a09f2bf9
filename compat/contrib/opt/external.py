"""Optimizers outside of TensorFlow, such as those of SciPy, which call a session for losses."""

from __future__ import annotations

import importlib
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from compat._tensorflow import tf1


class ExternalOptimizerInterface:
    """Base class of optimizers that minimize a loss of a graph; subclasses define `_minimize`.

    Args:
      loss: A scalar tensor.
      var_list: The variables to train; by default all trainable variables.
      equalities: Scalar tensors to keep at zero.
      inequalities: Scalar tensors to keep at or above zero.
      var_to_bounds: Lower and upper bounds, numbers or arrays, by variable.
      optimizer_kwargs: Keyword arguments of `_minimize`.
    """

    def __init__(
        self,
        loss: Any,
        var_list: Any = None,
        equalities: Sequence[Any] | None = None,
        inequalities: Sequence[Any] | None = None,
        var_to_bounds: Mapping[Any, Any] | None = None,
        **optimizer_kwargs: Any,
    ) -> None:
        self._vars = list(tf1.trainable_variables() if var_list is None else var_list)
        self._shapes = [tuple(each.shape.as_list()) for each in self._vars]
        self._loss, self.optimizer_kwargs = loss, optimizer_kwargs
        self._equalities, self._inequalities = list(equalities or ()), list(inequalities or ())
        self._packed_bounds = None if var_to_bounds is None else self._bounds(var_to_bounds)
        self._placeholders = [tf1.placeholder(each.dtype.base_dtype) for each in self._vars]
        self._updates = [
            each.assign(tf1.reshape(placeholder, shape))
            for each, placeholder, shape in zip(self._vars, self._placeholders, self._shapes)
        ]
        self._packed_var = _pack(self._vars)
        self._packed_loss_grad = self._gradient(loss)
        self._equality_grads = [self._gradient(each) for each in self._equalities]
        self._inequality_grads = [self._gradient(each) for each in self._inequalities]

    def minimize(
        self,
        session: Any = None,
        feed_dict: Mapping[Any, Any] | None = None,
        fetches: Sequence[Any] | None = None,
        step_callback: Callable[..., Any] | None = None,
        loss_callback: Callable[..., Any] | None = None,
        **run_kwargs: Any,
    ) -> None:
        """Runs the optimizer until it ends, and stores the result in the variables.

        Args:
          session: The session; by default the current one.
          feed_dict: Feeds of all calls.
          fetches: Tensors whose values are passed to `loss_callback`.
          step_callback: Called after each step with all variables as one vector.
          loss_callback: Called whenever the loss is computed.
          run_kwargs: Arguments of the call that sets the variables at the end.
        """
        session = session or tf1.get_default_session()
        feed, more = dict(feed_dict or {}), list(fetches or ())

        def function(tensors: Sequence[Any], callback: Any = None) -> Callable[[Any], list[Any]]:
            def evaluate(x: Any) -> list[Any]:
                self._set(session, x)
                values = session.run([*tensors, *more], feed)
                if callback is not None:
                    callback(*values[len(tensors) :])
                return list(values[: len(tensors)])

            return evaluate

        result = self._minimize(
            initial_val=session.run(self._packed_var),
            loss_grad_func=function([self._loss, self._packed_loss_grad], loss_callback),
            equality_funcs=[function([each]) for each in self._equalities],
            equality_grad_funcs=[function([each]) for each in self._equality_grads],
            inequality_funcs=[function([each]) for each in self._inequalities],
            inequality_grad_funcs=[function([each]) for each in self._inequality_grads],
            packed_bounds=self._packed_bounds,
            step_callback=step_callback or (lambda x: None),
            optimizer_kwargs=self.optimizer_kwargs,
        )
        self._set(session, result, **run_kwargs)

    def _minimize(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            "To use ExternalOptimizerInterface, subclass from it and implement the _minimize() "
            "method."
        )

    def _set(self, session: Any, packed: Any, **run_kwargs: Any) -> None:
        """Sets the variables by placeholders: TensorFlow 1.15 fed them, which is impossible now."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes])
        parts = np.split(np.asarray(packed), ends[:-1])
        session.run(self._updates, dict(zip(self._placeholders, parts)), **run_kwargs)

    def _gradient(self, value: Any) -> Any:
        gradients = tf1.gradients(value, self._vars)
        return _pack([tf1.zeros_like(v) if g is None else g for g, v in zip(gradients, self._vars)])

    def _bounds(self, bounds_of: Mapping[Any, Any]) -> list[tuple[float, float]]:
        known = {each.ref(): bounds for each, bounds in bounds_of.items()}
        sides: tuple[list[Any], list[Any]] = ([], [])
        for each, shape in zip(self._vars, self._shapes):
            for side, bound in zip(sides, known.get(each.ref(), (-np.inf, np.inf))):
                side.extend(np.broadcast_to(bound, shape).flat)
        return list(zip(*sides))


def _pack(tensors: Sequence[Any]) -> Any:
    return tf1.concat([tf1.reshape(each, [-1]) for each in tensors], 0)


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """Minimizes by `scipy.optimize.minimize`, with the method L-BFGS-B by default."""

    _DEFAULT_METHOD = "L-BFGS-B"

    def _minimize(
        self,
        initial_val: Any,
        loss_grad_func: Any,
        equality_funcs: Any,
        equality_grad_funcs: Any,
        inequality_funcs: Any,
        inequality_grad_funcs: Any,
        packed_bounds: Any,
        step_callback: Any,
        optimizer_kwargs: Mapping[str, Any],
    ) -> Any:
        def doubled(function: Any) -> Callable[[Any], Any]:
            """Makes a function return float64, which SciPy's solvers require."""
            return lambda x: np.asarray(function(x)[0], np.float64)

        def loss_and_gradient(x: Any) -> tuple[Any, Any]:
            loss, gradient = loss_grad_func(x)
            return float(loss), np.asarray(gradient, np.float64)

        constraints = [
            {"type": kind, "fun": doubled(function), "jac": doubled(gradient)}
            for kind, functions, gradients in (
                ("eq", equality_funcs, equality_grad_funcs),
                ("ineq", inequality_funcs, inequality_grad_funcs),
            )
            for function, gradient in zip(functions, gradients)
        ]
        arguments = {"jac": True, "callback": step_callback, "constraints": constraints}
        arguments["bounds"] = packed_bounds
        if "bounds" in optimizer_kwargs:
            raise ValueError("Bounds must be set using the var_to_bounds argument")
        for name in arguments:
            if name in optimizer_kwargs:
                raise ValueError(
                    f"Optimizer keyword arg '{name}' is set automatically and cannot be injected "
                    "manually"
                )
        options = {"method": self._DEFAULT_METHOD, **optimizer_kwargs, **arguments}
        solvers: Any = importlib.import_module("scipy.optimize")
        first = np.asarray(initial_val, np.float64)
        result = solvers.minimize(loss_and_gradient, first, **options)
        lines = ["Optimization terminated with:", f"  Message: {result.message}"]
        lines.append(f"  Objective function value: {result.fun:f}")
        for key, what in (("nit", "iterations"), ("nfev", "functions evaluations")):
            if key in result:
                lines.append(f"  Number of {what}: {result[key]}")
        tf1.logging.info("\n".join(lines))
        return result.x
