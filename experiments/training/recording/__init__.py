"""The record of a run: curves, checkpoints, its completion marker."""
