"""Evaluation of a run's checkpoints, and what follows from it: the best one, and early stopping."""
