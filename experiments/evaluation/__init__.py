"""Evaluates the checkpoints of a run, keeps the best one, and stops a run early."""
