"""Starts programs: command lines, clusters on this machine, and signals to stop."""
