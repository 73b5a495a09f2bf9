"""Functions and classes with the behavior of old releases, a file for each part of a package."""
