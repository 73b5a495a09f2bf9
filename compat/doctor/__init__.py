"""`python -m compat doctor`: checks this environment and prints commands that fix problems.

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
