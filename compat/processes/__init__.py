"""Child processes that start, restart and end together."""
