"""`python -m benchmarks`: all that is measured."""

from __future__ import annotations

import sys

from benchmarks import start
from benchmarks.updates import __main__ as updates

sys.exit(updates.main() or start.main([]))
