"""Measurements beside hand-written programs: `python -m benchmarks.updates`."""
