"""The names that Python's library, NumPy and other packages removed or changed since 2016.

As in `table`, the replacement of a name is an attribute of a module ("numpy:prod") or a whole
module ("joblib:"), which also replaces the names below it.
"""

from __future__ import annotations

from typing import Mapping

from compat.scripts.names import (
    numpy_names,
    package_arguments,
    package_names,
    python_names,
)
from compat.scripts.names.table import Served

_NUMPY = "numpy."


def _gone() -> dict[str, Served]:
    entries: dict[str, Served] = {}
    lists = [("Python", "", python_names.GONE), ("NumPy", _NUMPY, numpy_names.GONE)]
    lists += [(package, "", gone) for package, gone in package_names.GONE.items()]
    for package, prefix, releases in lists:
        for release, served in releases.items():
            for by, names in served.items():
                for name in names.split():
                    last = name.rpartition(".")[2]
                    gone = f"{package} {release}".strip()
                    entries[prefix + name] = Served(by.replace("*", last), gone)
    for name, (gone, why) in package_names.UNSERVED.items():
        entries[name] = Served("", gone, why)
    return entries


# Names that were removed.
GONE: Mapping[str, Served] = _gone()
# Functions that accepted unusual arguments. Few calls pass any.
LENIENT = {_NUMPY + name for name in f"{numpy_names.SIZED} {numpy_names.SHAPED}".split()}
# Functions and classes that still exist, and their replacements.
CHANGED: Mapping[str, str] = {
    **{
        _NUMPY + name: "compat.scripts.shims.arrays:" + name.replace(".", "_")
        for name in f"{numpy_names.CHANGED} {numpy_names.SIZED} {numpy_names.SHAPED}".split()
    },
    **python_names.CHANGED,
    **package_arguments.CHANGED,
}
# Functions and classes with renamed arguments: the new names by the old ones; "" for removed ones.
ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    **{_NUMPY + name: arguments for name, arguments in numpy_names.ARGUMENTS.items()},
    **python_names.ARGUMENTS,
    **package_arguments.ARGUMENTS,
}
# Functions and classes whose arguments were positional once: the names of these arguments.
POSITIONS: Mapping[str, str] = package_arguments.POSITIONS
# Functions and classes with arguments whose values have been renamed.
VALUES: Mapping[str, Mapping[str, Mapping[str, object]]] = package_arguments.VALUES
_NAMES = {*GONE, *CHANGED, *ARGUMENTS, *POSITIONS, *VALUES}
# Modules that contain such names.
MODULES = {name.rsplit(".", count)[0] for name in _NAMES for count in range(1, name.count(".") + 1)}
PACKAGES = {name.partition(".")[0] for name in _NAMES} | set(package_names.PREPARED)
