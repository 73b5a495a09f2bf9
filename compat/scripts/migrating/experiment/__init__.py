"""Writes a migrated program as an `Experiment`: settings, data, loss and optimizer.

The loop, the session, checkpoints and records are those of `experiments.run`.
"""
