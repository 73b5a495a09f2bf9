"""Scripts and programs of TensorFlow 0.8 to 1.15: they are run, checked, migrated and proved.

A command line goes to `commands`. `reading` parses a file and finds its names; `rules` finds, and
rewrites, uses that have changed since 2016. `compat run` shows the script the modules of `view`,
whose names the tables in `names` take from `shims`, `compat.contrib` and TensorFlow.
"""
