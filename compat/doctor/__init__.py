"""`python -m compat doctor`: this environment in one page, and what mends it.

Example:
  >>> main(["--deadline=30"])
  packages
    Python               3.11.7, /usr/bin/python3
  ...
  all is well
  0
"""

from compat.doctor.command import main

__all__ = ["main"]
