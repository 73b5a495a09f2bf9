"""Static analysis behind `python -m compat check`, from the text of a script alone."""
