"""`tf.app.flags` as before 1.5: lenient, and parsed on first access; otherwise absl's flags.

Unknown flags are ignored. A flag may be shortened to an unambiguous prefix of its name, and a
boolean value may be a separate word.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Sequence

from absl import flags as absl_flags  # noqa: TID251 - The script's flags are these.
from absl.flags import *  # noqa: F403, TID251 - Scripts use all names of absl.flags.

# Flags that the script has defined; absl also holds the flags of libraries.
_defined: set[str] = set()
_TRUTH = {"true": "true", "t": "true", "1": "true", "false": "false", "f": "false", "0": "false"}


_REAL = absl_flags.FLAGS


class _Flags:
    """absl's flags, parsed leniently; `__flags` holds plain values, as before 1.5."""

    def _parse_flags(self, args: Sequence[str] | None = None) -> list[str]:
        argv = list(sys.argv if args is None else [sys.argv[0], *args])
        _REAL.set_gnu_getopt(True)
        try:
            return list(_REAL(as_before(argv, _REAL), known_only=True))[1:]
        except absl_flags.Error as error:
            # `absl.app.run` exits with the same message.
            sys.exit(f"FATAL Flags parsing error: {error}")

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        del known_only
        return [argv[0], *self._parse_flags(list(argv)[1:])]

    def __getattr__(self, name: str) -> Any:
        if name.endswith("__flags"):  # Inside a class, Python changes the name to `_Class__flags`.
            return self.values()
        if name.startswith("__"):
            raise AttributeError(name)
        if not hasattr(type(_REAL), name):
            self._parse()
        return getattr(_REAL, name)

    def values(self) -> dict[str, Any]:
        """Returns the values of the flags that the script has defined."""
        self._parse()
        return {flag: _REAL[flag].value for flag in sorted(_defined)}

    def _parse(self) -> None:
        if not _REAL.is_parsed():
            self._parse_flags()

    def __setattr__(self, name: str, value: Any) -> None:
        self._parse()
        setattr(_REAL, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_REAL, name)

    def __getitem__(self, name: str) -> Any:
        return _REAL[name]

    def __contains__(self, name: str) -> bool:
        return name in _REAL

    def __iter__(self) -> Any:
        return iter(_REAL)

    def __dir__(self) -> list[str]:
        return list(_REAL)


def as_before(argv: Sequence[str], real: Any) -> list[str]:
    """Returns a command line, starting with the program, in the form that absl's flags accept."""
    words = list(argv)
    for i in range(1, len(words)):
        word = words[i]
        if word == "--":
            break
        name, equals, value = word.lstrip("-").partition("=")
        is_flag = word.startswith("-") and name and not name[0].isdigit()
        if is_flag and name not in real and not (name.startswith("no") and name[2:] in real):
            meant = [flag for flag in _defined if flag.startswith(name)]
            if len(meant) == 1:
                name = meant[0]
                words[i] = word = f"--{name}{equals}{value}"
        if word.startswith("-") and name in real and real[name].boolean:
            following = words[i + 1].lower() if i + 1 < len(words) else ""
            if equals:
                words[i] = f"--{name}={_TRUTH.get(value.lower(), 'false')}"
            elif following in _TRUTH:
                words[i] = f"--{name}={_TRUTH[following]}"
                words[i + 1] = ""
    return [word for i, word in enumerate(words) if word or (argv[i] == "" and i)]


FLAGS = _Flags()


def _definer(kind: str) -> Callable[..., None]:
    """Returns a function that defines a flag, also where absl would raise an error.

    A later definition replaces an earlier one of the same name. A default may have another type
    than the flag.
    """

    def define(
        flag_name: str, default_value: Any = None, docstring: Any = "", *args: Any, **kw: Any
    ) -> None:
        flag_name = kw.pop("name", flag_name)
        default_value = kw.pop("default", default_value)
        docstring = kw.pop("help", docstring)
        kw.setdefault("allow_override", True)
        if flag_name in _defined and flag_name in _REAL:
            delattr(_REAL, flag_name)
        _defined.add(flag_name)
        try:
            getattr(absl_flags, kind)(flag_name, default_value, docstring, *args, **kw)
        except absl_flags.IllegalFlagValueError:
            getattr(absl_flags, kind)(flag_name, None, docstring, *args, **kw)
            _REAL[flag_name].value = _REAL[flag_name].default = default_value

    define.__name__ = kind
    return define


DEFINE_bool = DEFINE_boolean = _definer("DEFINE_boolean")
DEFINE_float = _definer("DEFINE_float")
DEFINE_integer = _definer("DEFINE_integer")
DEFINE_string = _definer("DEFINE_string")


def run(main: Any = None, argv: Sequence[str] | None = None) -> None:
    """Calls `main` with the positional arguments and exits with its result."""
    rest = FLAGS._parse_flags(None if argv is None else list(argv)[1:])
    program = main or sys.modules["__main__"].main
    sys.exit(program([sys.argv[0], *rest]))


# This module also stands for `tf.python.platform.app`, which has `flags`.
flags = sys.modules[__name__]
