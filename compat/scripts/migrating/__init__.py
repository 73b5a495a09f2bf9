"""Rewrites a script of TensorFlow 0.8 to 1.15 as a program on `compat.v1`, by rules.

A rule finds uses in a `program` and yields edits of its text; `migration` applies the rules, which
the files here have by what they are about. `command` is `python -m compat migrate`.
"""
