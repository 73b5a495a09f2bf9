"""`python -m benchmarks`: all that is measured."""

from __future__ import annotations

import sys

from benchmarks import updates

sys.exit(updates.main())
