"""Runs, checks, migrates and proves scripts and programs of TensorFlow 0.8 to 1.15.

To prove a script is to run it in two ways and to compare the losses. `commands` has the command
lines. `reading` parses a file and finds its names; `rules` finds, and rewrites, uses that have
changed since 2016. Under `compat run` a script imports the modules of `view` in place of the real
ones. They provide the old names, which the tables in `names` map to objects of `shims`,
`compat.contrib` and TensorFlow.
"""
