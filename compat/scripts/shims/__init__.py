"""Functions and classes with their old behavior, a file for each part of a package that had it."""
