"""Runs the old API: the interface of a runtime, and the two runtimes that implement it."""
