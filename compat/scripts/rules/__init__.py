"""What has changed since 2016, one rule a file, which `check` finds and `migrate` rewrites.

A rule has an id, the release that changed something, and an example of before and after, which is
its test: see `concat.py`. It is listed, and applied, in the order of `catalog.RULES`.
"""
