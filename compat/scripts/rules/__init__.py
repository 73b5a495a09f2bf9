"""Rules for changes since 2016, by which `check` finds old uses, and `migrate` rewrites them.

A rule has an id, the release that changed something, and an example of before and after, which is
its test. Each file has the rules of one kind in `RULES`, such as `python2.py`; `catalog.RULES` has
all of them, in the order in which they are listed and applied.
"""
