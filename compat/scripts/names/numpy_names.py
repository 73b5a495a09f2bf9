"""The names and arguments that NumPy removed or changed since 2016, with their replacements."""

from __future__ import annotations

from typing import Mapping

_OWN = "compat.scripts.shims.arrays:"

# By the release that removed the names: the replacement, and the names. "*" stands for the name; a
# replacement that is a whole module ends with a colon.
GONE: Mapping[str, Mapping[str, str]] = {
    "1.18": {"numpy.testing:": "testing.utils", "numpy:ndim": "rank"},
    "1.23": {
        _OWN + "asscalar": "asscalar",
        "builtins:len": "alen",
        "numpy:genfromtxt": "ndfromtxt",
        "pickle:loads": "loads",
    },
    "1.24": {
        "builtins:*": "complex float int object",
        "builtins:bool": "bool",
        "builtins:int": "long",
        "builtins:str": "str unicode",
        "numpy:bool_": "bool8",
        "numpy:bytes_": "bytes0",
        "numpy:intp": "int0",
        "numpy:object_": "object0",
        "numpy:sctypeDict": "typeDict",
        "numpy:str_": "str0",
        "numpy:uintp": "uint0",
        "numpy:void": "void0",
        "warnings:": "warnings",
    },
    "2.0": {
        "ast:literal_eval": "safe_eval",
        "math:": "math",
        "numpy.char:*": "compare_chararrays",
        "numpy.exceptions:*": (
            "AxisError ComplexWarning ModuleDeprecationWarning RankWarning TooHardError "
            "VisibleDeprecationWarning"
        ),
        "numpy.rec:*": "format_parser",
        "builtins:issubclass": "issubclass_",
        "numpy.lib.array_utils:*": "byte_bounds",
        "numpy.lib.npyio:*": "DataSource",
        "numpy:all": "alltrue",
        "numpy:any": "sometrue",
        "numpy:asmatrix": "mat",
        "numpy:bytes_": "string_",
        "numpy:clongdouble": "clongfloat longcomplex",
        "numpy:complex128": "cfloat complex_",
        "numpy:complex64": "singlecomplex",
        "numpy:cumprod": "cumproduct",
        "numpy:float64": "float_",
        "numpy:inf": "Inf Infinity PINF infty",
        "numpy:": (
            "lib.arraypad lib.arraysetops lib.function_base lib.histograms lib.index_tricks "
            "lib.nanfunctions lib.polynomial lib.shape_base lib.twodim_base lib.type_check "
            "lib.ufunclike"
        ),
        "numpy.fft:": "fft.helper",
        "numpy.linalg:": "linalg.linalg",
        "numpy:longdouble": "longfloat",
        "numpy:nan": "NAN NaN",
        "numpy:pad": "lib.pad",
        "numpy:prod": "product",
        "numpy:round": "round_",
        "numpy:str_": "unicode_",
        "numpy:vstack": "row_stack",
        "sys:": "sys",
        _OWN + "*": (
            "NINF NZERO PZERO asfarray cast deprecate disp fastCopyAndTranspose find_common_type "
            "issctype issubsctype msort nbytes obj2sctype recfromcsv recfromtxt sctype2char "
            "sctypes source who"
        ),
    },
    "2.4": {
        "numpy:trapezoid": "trapz",
        _OWN + "in1d": "in1d",
        _OWN + "random_integers": "random.random_integers",
    },
}

# Functions that accept less than they did; `_OWN` has replacements of the same names.
CHANGED = (
    "amax amin array asanyarray asarray bincount column_stack dstack fromstring hstack linspace "
    "load max mean min set_printoptions stack std sum unique var vstack"
)
# Functions that accepted floats without a fraction as sizes.
SIZED = (
    "empty eye full identity ones tile zeros random.choice random.normal random.permutation "
    "random.rand random.randn random.uniform"
)
# Functions that accepted numbers among arrays of one element, and rows of different lengths.
SHAPED = "ravel reshape resize"

# The new names of arguments by their old ones; "" for a removed argument.
ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "array2string": {"style": ""},
    "correlate": {"old_behavior": ""},
    "histogram": {"normed": "density"},
    "histogram2d": {"normed": "density"},
    "nanpercentile": {"interpolation": "method"},
    "percentile": {"interpolation": "method"},
    "reshape": {"newshape": "shape"},
}
