"""The names that Python's library removed or changed since 2016, with their replacements."""

from __future__ import annotations

from typing import Mapping

_OWN = "compat.scripts.shims.python:"


def within(module: str, names: str) -> str:
    """Returns names with the name of their module before each."""
    return " ".join(f"{module}.{name}" for name in names.split())


# By the release of Python that removed the names: the replacement ("*" stands for the last part),
# the names.
GONE: Mapping[str, Mapping[str, str]] = {
    "3.0": {
        "builtins:filter": "itertools.ifilter",
        "builtins:map": "itertools.imap",
        "builtins:zip": "itertools.izip",
        "itertools:filterfalse": "itertools.ifilterfalse",
        "itertools:zip_longest": "itertools.izip_longest",
        "os:getcwd": "os.getcwdu",
        "string:ascii_letters": "string.letters",
        "string:ascii_lowercase": "string.lowercase",
        "string:ascii_uppercase": "string.uppercase",
        "sys:maxsize": "sys.maxint",
        "urllib.parse:*": "urllib.quote urllib.quote_plus urllib.unquote urllib.urlencode",
        "urllib.request:*": "urllib.urlopen urllib.urlretrieve",
        _OWN + "maketrans": "string.maketrans",
        _OWN + "setdefaultencoding": "sys.setdefaultencoding",
        _OWN + "string_*": within(
            "string",
            "atof atoi capitalize center count expandtabs find index join ljust lower lstrip "
            "replace rfind rindex rjust rstrip split strip swapcase translate upper zfill",
        ),
        _OWN + "string_atoi": "string.atol",
        _OWN + "string_join": "string.joinfields",
        _OWN + "string_split": "string.splitfields",
        "builtins:bool": "types.BooleanType",
        "builtins:complex": "types.ComplexType",
        "builtins:dict": "types.DictType types.DictionaryType",
        "builtins:float": "types.FloatType",
        "builtins:int": "types.IntType types.LongType",
        "builtins:list": "types.ListType",
        "builtins:object": "types.ObjectType",
        "builtins:slice": "types.SliceType",
        "builtins:str": "types.StringType types.StringTypes types.UnicodeType",
        "builtins:tuple": "types.TupleType",
        "builtins:type": "types.ClassType types.TypeType",
    },
    "3.7": {"errno:": "os.errno"},
    "3.8": {
        "html:*": "cgi.escape",
        "urllib.parse:*": "cgi.parse_qs cgi.parse_qsl",
        "time:process_time": "time.clock",
        _OWN + "dist": "platform.dist platform.linux_distribution",
    },
    "3.9": {
        "base64:decodebytes": "base64.decodestring",
        "base64:encodebytes": "base64.encodestring",
        "math:*": "fractions.gcd",
        "threading:": "dummy_threading",
    },
    "3.10": {
        "collections.abc:*": within(
            "collections",
            "AsyncGenerator AsyncIterable AsyncIterator Awaitable ByteString Callable Collection "
            "Container Coroutine Generator Hashable ItemsView Iterable Iterator KeysView Mapping "
            "MappingView MutableMapping MutableSequence MutableSet Reversible Sequence Set Sized "
            "ValuesView",
        ),
    },
    "3.11": {_OWN + "*": "inspect.getargspec"},
    "3.12": {
        "locale:format_string": "locale.format",
        "setuptools._distutils:": "distutils",
        _OWN: "imp",
    },
    "3.13": {
        "html:": "cgi",
        "shlex:": "pipes",
        "compat.scripts.shims.images:": "imghdr",
    },
}

# Functions that accept less than they did, and their replacements.
CHANGED: Mapping[str, str] = {
    "importlib.reload": "compat.scripts.view.python2_builtins:classic_reload",
    "random.sample": _OWN + "random_sample",
    "random.shuffle": _OWN + "random_shuffle",
}

# Arguments that were removed.
ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    name: {"encoding": ""} for name in ("json.dump", "json.dumps", "json.load", "json.loads")
}
