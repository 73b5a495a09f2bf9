"""Keeps lookups of sparse embeddings from copying their tables.

If gathered rows of a resource variable are summed, TensorFlow's graph optimizer (since 2.3) reads
the whole variable instead of gathering. After a sparse update of the variable, such a read is a
copy, which takes 70 % of a step for tables of a gigabyte. The optimizer recognizes a lookup by its
operation "Unique". This module uses "UniqueWithCounts" instead, whose first two results are the
same, so that the optimizer leaves the lookup as it is.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from compat._tensorflow import internals


@functools.lru_cache(maxsize=None)
def gather_rows() -> None:
    """Makes `embedding_lookup_sparse` read the rows that it needs; further calls do nothing."""
    lookups: Any = internals.load("tensorflow.python.ops.embedding_ops")
    operations: Any = lookups.array_ops
    module: Any = types.ModuleType(operations.__name__)
    vars(module).update(vars(operations))
    module.unique = lambda x, **options: operations.unique_with_counts(x, **options)[:2]
    lookups.array_ops = module
