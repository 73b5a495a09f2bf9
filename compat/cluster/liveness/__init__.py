"""Waits for the other tasks of a cluster, watches them, names those that are lost, ends the run."""
