"""What `python -m compat check` finds in a script, from its text alone."""
