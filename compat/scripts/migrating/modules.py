"""The modules of a script's own, for the rooms of this one."""

from compat.scripts.source.modules import files, find, imported, imports

__all__ = ["files", "find", "imported", "imports"]
