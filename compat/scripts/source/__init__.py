"""The text of a script as Python 3 code."""
