"""Rewrites a migrated program on `compat.step`, so that it runs on either runtime.

The block that builds its graph becomes a function, and each call of its session a step.
"""
