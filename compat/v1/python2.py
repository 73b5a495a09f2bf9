"""Operations and builtins of Python 2, for a program that was written in it.

    from compat.v1 import python2

    half = python2.divide(7, 2)  # 3

Importing the module makes sessions return strings where TensorFlow returned `str` in Python 2.
"""

from __future__ import annotations

import importlib

from compat.scripts.view import namespace, python2_builtins

divide = python2_builtins.classic_division
decode = python2_builtins.classic_decode
# Builtins, such as `cmp`, that a conversion of the text cannot replace.
globals().update({k: v for k, v in python2_builtins.BUILTINS.items() if k[0] != "_"})

_TEXT = "compat.scripts.view.text"
if _TEXT not in namespace.when_loaded:
    namespace.when_loaded.append(_TEXT)
    if namespace.top.cache_info().currsize:  # TensorFlow is loaded already.
        importlib.import_module(_TEXT).install()
