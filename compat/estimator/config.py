"""`RunConfig`, from the arguments and TF_CONFIG."""

from __future__ import annotations

import os
from typing import Any

from compat.errors import UserError
from compat.estimator.package import names


class RunConfig(names.RunConfig):
    """`tf.estimator.RunConfig`, which reports a wrong argument or TF_CONFIG in one line.

    Raises:
      UserError: An argument is wrong, or TF_CONFIG is not valid JSON or names a wrong task.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().__init__(*args, **kwargs)
        except (ValueError, TypeError, AttributeError) as error:
            text = os.environ.get("TF_CONFIG")
            where = f"; TF_CONFIG is {text}" if text else ""
            raise UserError(f"RunConfig: {error}{where}; correct it") from error
