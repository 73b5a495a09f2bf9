"""Reads a script or a notebook as Python 3: its text, syntax tree, names and imported modules."""
