"""Elastic averaging: workers stay near a model on the servers, and it near them."""

from __future__ import annotations

from typing import Any, Sequence

from compat._tensorflow import tf1
from compat.contrib.opt.local_updates import Getter, LocalUpdates, counted, pulled


class ElasticAverageCustomGetter(Getter):
    """Gives each variable copies for `ElasticAverageOptimizer`."""

    own = "local_center_variable"


class ElasticAverageOptimizer(LocalUpdates):
    """Pulls the model of each worker and the one on the servers towards each other.

    Every `communication_period` steps of a worker, `moving_rate` times their difference is taken
    from its variables, and added to those on the servers. The loss has a term by which the worker
    stays near what it saw of them last. The rates are by default those of the paper.
    Source: Zhang, Choromanska and LeCun, Deep Learning with Elastic Averaging SGD, 2015.

    Args:
      synchronous: the workers wait for each other before they begin.
    """

    BETA = 0.9

    def __init__(
        self,
        opt: Any,
        num_worker: int,
        ea_custom_getter: ElasticAverageCustomGetter,
        communication_period: int = 10,
        moving_rate: float | None = None,
        rho: float | None = None,
        use_locking: bool = True,
        synchronous: bool = False,
        name: str = "ElasticAverageOptimizer",
    ) -> None:
        super().__init__(opt, ea_custom_getter, communication_period, use_locking, name)
        self._num_worker, self._synchronous = num_worker, synchronous
        default = self.BETA / communication_period / num_worker
        self._moving_rate = default if moving_rate is None else moving_rate
        rate: Any = getattr(opt, "_learning_rate", None) or getattr(opt, "_lr", None)
        self._rho = self._moving_rate / rate if rho is None else rho

    def compute_gradients(self, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        local = list(var_list or tf1.trainable_variables())
        apart = [each - center for each, center in zip(local, self._own(local))]
        distance = self._rho * tf1.add_n([tf1.nn.l2_loss(each) for each in apart])
        return self._opt.compute_gradients(loss + distance, local, *args, **kwargs)

    def _exchange(self, pairs: Sequence[Any], local: Sequence[Any], global_step: Any) -> list[Any]:
        centers, seen = self._centers(local), self._own(local)
        moves = []
        with tf1.control_dependencies(pulled(seen, centers)):
            for each, center in zip(local, seen):
                with tf1.device(each.device):
                    apart = each.read_value() - center.read_value()
                    moves.append(self._moving_rate * apart)
        updates = [tf1.assign_sub(each, move).op for each, move in zip(local, moves)]
        for center, move in zip(centers, moves):
            with tf1.device(center.device):
                updates.append(tf1.assign_add(center, move).op)
        with tf1.control_dependencies(moves):
            return updates + counted(global_step)

    def get_init_op(self, task_index: int = 0) -> Any:
        local = tf1.trainable_variables()
        if not local:
            raise ValueError(
                "The lists of local_variables, global_center_variables, local_center_variables "
                "should not be empty"
            )
        init = super().get_init_op(task_index)
        if not self._synchronous:
            return init
        with tf1.device(self._centers(local)[0].device):  # A server's, which all workers see.
            queues = [
                tf1.FIFOQueue(
                    self._num_worker, [tf1.bool], [[]], shared_name=f"variable_init_sync_queue{i}"
                )
                for i in range(self._num_worker)
            ]
        others = [queue for i, queue in enumerate(queues) if i != task_index]
        with tf1.control_dependencies([init]):
            ready = [queue.enqueue(tf1.constant(False)) for queue in others]
        return tf1.group(init, *ready, queues[task_index].dequeue_many(len(others)))

    def _initial(self, local: Sequence[Any]) -> list[Any]:
        centers = self._centers(local)
        return pulled(local, centers) + pulled(self._own(local), centers)

    def swapping_saver(
        self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any
    ) -> Any:
        """Returns a saver of the variables on the servers, under the names of the worker's."""
        known = self._getter._global_map
        if not known:
            raise RuntimeError(
                "global_center_variable is empty, please make sure this is called after model "
                "created and ElasticAverageCustomGetter is used when declaring you model"
            )
        saved = tf1.trainable_variables() if var_list is None else var_list
        if not isinstance(saved, dict):
            saved = {variable.op.name: variable for variable in saved}
        swapped = {
            key: [known.get(part.ref(), part) for part in each]
            if isinstance(each, (list, tuple))
            else known.get(each.ref(), each)
            for key, each in saved.items()
        }
        return tf1.train.Saver(swapped, name=name, **kwargs)
