"""Waits for the other tasks of a cluster, detects lost ones, and announces the end of the run."""
