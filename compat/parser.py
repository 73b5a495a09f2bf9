"""Command lines of `python -m compat`: what is wrong with one takes a line, as any other input."""

from __future__ import annotations

import argparse
from typing import NoReturn

from compat.errors import UserError


class Parser(argparse.ArgumentParser):
    """Differs from its base in that it raises what is wrong."""

    def error(self, message: str) -> NoReturn:
        """Raises a `UserError`, where argparse prints the usage and exits."""
        raise UserError(f"{message}; {self.prog} --help says more")
