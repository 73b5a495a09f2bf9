"""An optimizer that preconditions its step by the latest gradients of all variables together."""

from __future__ import annotations

from typing import Any, Sequence

from compat._tensorflow import tf1


class GGTOptimizer(tf1.train.Optimizer):
    """Full-matrix AdaGrad over a window of averaged gradients. It does not train embeddings.

    Source: Agarwal et al., Efficient Full-Matrix Adaptive Regularization, 2019.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        use_locking: bool = False,
        name: str = "GGT",
        window: int = 10,
        eps: float = 1e-4,
        svd_eps: float = 1e-6,
        sigma_eps: float = 1e-2,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate, self._beta1, self._window = learning_rate, beta1, window
        self._eps, self._svd_eps, self._sigma_eps = eps, svd_eps, sigma_eps

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        self._pairs: list[tuple[Any, Any]] = []  # The gradients, each with its variable.
        kind, size = var_list[0].dtype.base_dtype, sum(v.shape.num_elements() for v in var_list)
        shapes = {"global_step": [], "grad_buffer": [self._window, size], "moment1": [size]}
        for name, shape in shapes.items():
            self._create_non_slot_variable(tf1.zeros(shape, kind), name, var_list[0])

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        self._pairs.append((grad, var))
        return tf1.no_op()

    _resource_apply_dense = _apply_dense

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        raise NotImplementedError("Sparse gradient updates are not supported.")

    _resource_apply_sparse_duplicate_indices = _apply_sparse

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        pairs = sorted(self._pairs, key=lambda pair: str(pair[1].name))
        graph = tf1.get_default_graph()
        step, buffer, moment = (
            self._get_non_slot_variable(name, graph=graph)
            for name in ("global_step", "grad_buffer", "moment1")
        )
        grad = tf1.concat([tf1.reshape(grad, [-1]) for grad, _ in pairs], 0)
        count = tf1.assign_add(step, 1.0)
        moment_new = tf1.assign(moment, self._beta1 * moment + (1 - self._beta1) * grad)
        row = tf1.cast(count - 1, tf1.int32) % self._window
        kept = tf1.scatter_update(buffer, row, moment_new)
        m = tf1.transpose(kept / tf1.sqrt(tf1.minimum(count, float(self._window))))
        product = tf1.matmul(m, m, transpose_a=True)
        sigma, u, _ = tf1.svd(product + self._svd_eps * tf1.eye(self._window, dtype=grad.dtype))
        root, column = tf1.sqrt(sigma), moment_new[:, tf1.newaxis]
        turned = tf1.matmul(u, tf1.matmul(m, column, transpose_a=True), transpose_a=True)

        def along(weights: Any) -> Any:
            return tf1.matmul(m, tf1.matmul(u, weights[:, tf1.newaxis] * turned))

        head, least = along((root + self._sigma_eps) ** -3.0), tf1.reduce_min(root)
        tail = (column - along(1 / sigma)) / least
        change = self._call_if_callable(self._learning_rate) * tf1.where(
            least > self._eps, head + tail, head
        )
        parts = tf1.split(change[:, 0], [var.shape.num_elements() for _, var in pairs])
        updated = [
            tf1.assign_sub(var, tf1.reshape(part, var.shape)).op
            for part, (_, var) in zip(parts, pairs)
        ]
        return tf1.group(*update_ops, *updated, name=name_scope)
