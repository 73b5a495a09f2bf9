"""Calls that took other arguments, or meant something else, in their time."""
