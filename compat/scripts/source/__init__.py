"""Converts the source of a script to Python 3 code."""
