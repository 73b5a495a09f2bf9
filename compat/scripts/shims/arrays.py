"""Functions of NumPy as they were until 2017, for scripts."""

from __future__ import annotations

import functools
import inspect
import math
import sys
from typing import Any, Callable

import numpy as np

NINF = -np.inf
NZERO = -0.0
PZERO = 0.0
_IS_2 = int(np.__version__.partition(".")[0]) >= 2
# NumPy 1 copies if necessary; NumPy 2 raises an error instead.
_IF_NEEDED: Any = None if _IS_2 else False

cast = {kind: functools.partial(np.asarray, dtype=kind) for kind in (np.float32, np.float64)}
nbytes = {kind: np.dtype(kind).itemsize for kind in np.sctypeDict.values()}
sctypes = {
    "complex": [np.complex64, np.complex128, np.clongdouble],
    "float": [np.float16, np.float32, np.float64, np.longdouble],
    "int": [np.int8, np.int16, np.int32, np.int64],
    "others": [bool, object, bytes, str, np.void],
    "uint": [np.uint8, np.uint16, np.uint32, np.uint64],
}


def array(value: Any, dtype: Any = None, **options: Any) -> Any:
    """Returns an array; rows of different lengths become an array of objects, as until 1.23.

    Integers that `dtype` cannot hold wrap around, as until 1.23. `copy=False` copies if necessary.
    """
    if options.get("copy") is False:
        options["copy"] = _IF_NEEDED
    try:
        return np.array(value, dtype, **options)
    except OverflowError:
        if not np.issubdtype(dtype, np.integer):
            raise
        return np.array(value).astype(dtype)
    except ValueError:
        if not isinstance(value, (list, tuple)):
            raise
        if dtype is None:
            return np.array(value, object, **options)
        return np.array([_element(part) for part in value], dtype, **options)


def _element(value: Any) -> Any:
    return value.item() if isinstance(value, np.ndarray) and value.size == 1 else value


def asarray(value: Any, dtype: Any = None, **options: Any) -> Any:
    """Returns a value as an array, by the rules of `array`."""
    is_array = type(value) is np.ndarray and (dtype is None or value.dtype == dtype)
    return value if is_array else array(value, dtype, copy=False, **options)


def asanyarray(value: Any, dtype: Any = None, **options: Any) -> Any:
    """Returns a value as an array or a matrix, by the rules of `array`."""
    return asarray(value, dtype, **{**options, "subok": True})


def _numbers(value: Any) -> Any:
    """Returns an array; numbers and arrays of one element become an array of numbers.

    As an array of objects, which it was until 1.23, today's TensorFlow could not take it in a feed.
    """
    made = array(value)
    parts = [_element(part) for part in value] if made.dtype == object else [None]
    return np.array(parts) if all(map(np.isscalar, parts)) else made


def _of_lists(name: str, convert: Callable[[Any], Any] = array) -> Callable[..., Any]:
    """Returns a function of one array that accepts generators and rows of different lengths."""
    function = getattr(np, name)

    @functools.wraps(function)
    def call(values: Any, *args: Any, **kwargs: Any) -> Any:
        if inspect.isgenerator(values):
            values = list(values)
        return function(
            convert(values) if isinstance(values, (list, tuple)) else values, *args, **kwargs
        )

    return call


amax = max = _of_lists("max")  # noqa: A001 - NumPy's names.
amin = min = _of_lists("min")  # noqa: A001
mean, std, unique, var = (_of_lists(name) for name in ("mean", "std", "unique", "var"))
sum = _of_lists("sum")  # noqa: A001
ravel, reshape, resize = (_of_lists(name, _numbers) for name in ("ravel", "reshape", "resize"))


def _of_sequences(name: str) -> Callable[..., Any]:
    """Returns a function of a sequence of arrays that accepts a generator, map or zip as well."""
    function = getattr(np, name)

    @functools.wraps(function)
    def call(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        is_sequence = isinstance(arrays, (list, tuple, np.ndarray))
        return function(arrays if is_sequence else list(arrays), *args, **kwargs)

    return call


column_stack, dstack, hstack, stack, vstack = (
    _of_sequences(name) for name in ("column_stack", "dstack", "hstack", "stack", "vstack")
)


def _of_sizes(function: Any) -> Callable[..., Any]:
    """Returns a function that accepts floats without a fraction as sizes, as until 1.11."""

    def whole(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(whole, value))
        return int(value) if isinstance(value, float) and value.is_integer() else value

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (IndexError, TypeError):
            return function(*map(whole, args), **{k: whole(value) for k, value in kwargs.items()})

    return call


empty, eye, full, identity, ones, tile, zeros = (
    _of_sizes(getattr(np, name))
    for name in ("empty", "eye", "full", "identity", "ones", "tile", "zeros")
)
random_choice, random_normal, random_permutation, random_rand, random_randn, random_uniform = (
    _of_sizes(getattr(np.random, name))
    for name in ("choice", "normal", "permutation", "rand", "randn", "uniform")
)


def asfarray(value: Any, dtype: Any = np.float64) -> Any:
    """Returns an array of floats."""
    return np.asarray(value, dtype=dtype if np.issubdtype(dtype, np.inexact) else np.float64)


def asscalar(value: Any) -> Any:
    """Returns the element of an array that has one."""
    return np.asarray(value).item()


def bincount(x: Any, weights: Any = None, minlength: Any = None) -> Any:
    """Accepts `minlength=None`."""
    return np.bincount(x, weights, minlength or 0)


def deprecate(*args: Any, **kwargs: Any) -> Any:
    """Returns the decorated function unchanged."""
    return args[0] if args and callable(args[0]) else lambda function: function


def disp(mesg: Any, device: Any = None, linefeed: bool = True) -> None:
    """Writes a message."""
    (device or sys.stdout).write(f"{mesg}\n" if linefeed else f"{mesg}")


def fastCopyAndTranspose(value: Any) -> Any:
    """Returns a copy of a transposed array."""
    return np.transpose(value).copy()


def find_common_type(array_types: Any, scalar_types: Any) -> Any:
    """Returns the type that can hold values of all the given types."""
    return np.result_type(*(array_types or scalar_types))


def fromstring(string: Any, dtype: Any = float, count: int = -1, *, sep: str = "") -> Any:
    """Returns an array of the numbers in a string or, as until 2.2, in bytes."""
    if sep:
        return np.fromstring(string, dtype, count, sep=sep)
    return np.frombuffer(string, dtype, count).copy()


def in1d(first: Any, second: Any, **options: Any) -> Any:
    """Returns whether each element of the flattened `first` is in `second`; bool `[size]`."""
    return np.isin(np.ravel(first), second, **options)


def issctype(value: Any) -> bool:
    """Returns whether a value is a type of scalars."""
    return isinstance(value, np.dtype) or (
        isinstance(value, type) and issubclass(value, np.generic)
    )


def issubsctype(first: Any, second: Any) -> bool:
    """Returns whether one type of scalars is a subclass of another."""
    return issubclass(obj2sctype(first), obj2sctype(second))


def linspace(start: Any, stop: Any, num: Any = 50, *args: Any, **kwargs: Any) -> Any:
    """Accepts a float for the number of samples."""
    return np.linspace(start, stop, int(num), *args, **kwargs)


def load(file: Any, mmap_mode: Any = None, allow_pickle: bool = True, **options: Any) -> Any:
    """Loads arrays of objects as well, as until 1.16.2.

    Like `pickle.load`, this runs code that the file may contain; see docs/security.md.
    """
    return np.load(file, mmap_mode, allow_pickle, **options)


def msort(value: Any) -> Any:
    """Returns an array sorted along its first axis."""
    return np.sort(value, axis=0)


def obj2sctype(value: Any) -> Any:
    """Returns the type of the scalars of a value."""
    return np.dtype(value).type if not isinstance(value, np.ndarray) else value.dtype.type


def random_integers(low: int, high: int | None = None, size: Any = None) -> Any:
    """Returns random integers from `low` to `high`, both included."""
    return np.random.randint(1 if high is None else low, (low if high is None else high) + 1, size)


def recfromcsv(file: Any, **options: Any) -> Any:
    """Returns the records of a file with comma-separated values; its first line has their names."""
    settings = {"case_sensitive": "lower", "names": True, "delimiter": ",", "dtype": None}
    return np.genfromtxt(file, **{**settings, **options}).view(np.recarray)


def recfromtxt(file: Any, **options: Any) -> Any:
    """Returns the records of a text file."""
    return np.genfromtxt(file, **{"dtype": None, **options}).view(np.recarray)


def sctype2char(value: Any) -> str:
    """Returns the character code of a type of scalars."""
    return np.dtype(value).char


def set_printoptions(*args: Any, **options: Any) -> None:
    """Accepts NaN as the threshold, which prints arrays in full."""
    threshold = options.get("threshold")
    if threshold == "nan" or (isinstance(threshold, float) and not math.isfinite(threshold)):
        options["threshold"] = sys.maxsize
    np.set_printoptions(*args, **options)


def source(value: Any, output: Any = None) -> None:
    """Prints the source of a function."""
    print(inspect.getsource(value), file=output)


def who(vardict: Any = None) -> None:
    """Prints the arrays among the variables of the caller."""
    for name, value in sorted((vardict or sys._getframe(1).f_locals).items()):
        if isinstance(value, np.ndarray):
            print(name, value.shape, value.nbytes, value.dtype.name)


def install() -> None:
    """Makes NumPy print scalars in lists as NumPy 1 did: `[0.5]`, not `[np.float64(0.5)]`."""
    if _IS_2:
        np.set_printoptions(legacy="1.25")
