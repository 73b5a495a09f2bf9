"""The settings of a run: defined once, read from flags and files."""
