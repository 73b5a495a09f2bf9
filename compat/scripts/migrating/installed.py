"""Prepares TensorFlow for the packages that a migrated program imports.

`compat.v1` loads TensorFlow on its first use. If another package makes a dataset before that, it is
a dataset of TensorFlow 2, outside of any graph.
"""

from __future__ import annotations

import ast
import os
import sys
import sysconfig

from compat.scripts.migrating.migration import Migrated
from compat.scripts.reading import conversion, program
from compat.scripts.view import libraries

_ITERATORS = ("make_one_shot_iterator", "make_initializable_iterator")
_CALL = "{}.disable_v2_behavior()  # Before another package makes datasets.\n"
# Packages that make no datasets, in addition to those that `libraries.is_old` knows.
_OTHERS = {"PIL", "absl", "compat", "cv2", "h5py", "matplotlib", "six", "tensorflow", "tqdm"}


def prepared(path: str, found: Migrated) -> Migrated:
    """Returns a migrated program that sets up TensorFlow before other packages make datasets.

    `compat.v1` sets up TensorFlow on its first use. A dataset that is made before is outside of any
    graph, so the iterators of the program cannot use it. If the program makes iterators and imports
    a package that may make datasets, it gets a call of `disable_v2_behavior` after its import of
    `compat.v1`.
    """
    if not found.is_changed or not any(name in found.text for name in _ITERATORS):
        return found
    script = program.of(conversion.Source(path, found.text, False))
    aliases = [
        (node, alias.asname)
        for node in script.trees[0].body
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "compat.v1" and alias.asname
    ]
    tops = {module.partition(".")[0] for module in script.modules}
    if not aliases or not any(_is_installed(name, path) for name in tops):
        return found
    node, name = aliases[0]
    call = _CALL.format(name)
    if call.partition("  #")[0] in found.text:
        return found
    lines = found.text.splitlines(True)
    lines[node.lineno - 1] += call
    move = [(line + (line > node.lineno), text) for line, text in found.remarks]
    return found._replace(text="".join(lines), remarks=move)


def _is_installed(name: str, path: str) -> bool:
    """Whether a module is in an installed package that may make datasets.

    False for Python's own modules, for those in the folder of the script `path`, and for packages
    that are known to make no datasets.
    """
    folder = os.path.dirname(os.path.abspath(path))
    standard = sysconfig.get_path("stdlib")
    dynamic = os.path.join(standard, "lib-dynload")
    names = [name, name + ".py"]
    if name in _OTHERS or name in sys.builtin_module_names or libraries.is_old(name):
        return False
    if any(os.path.exists(os.path.join(place, n)) for place in (folder, standard) for n in names):
        return False
    return not (
        os.path.isdir(dynamic) and any(n.startswith(name + ".") for n in os.listdir(dynamic))
    )
