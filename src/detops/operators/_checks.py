"""Checks of arguments, with one wording: the argument's name, what it wants, what it got."""

import functools
import math
import numbers
import operator
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from detops import _specification
from detops._messages import shown
from detops.operators import _plain

_FLOAT32 = np.dtype(np.float32)


def conversion(got: np.dtype, to_float32: bool = True) -> str:
    """Return what to do about a dtype that another library defines, such as bfloat16; nothing for NumPy's own."""
    if got.kind != "V" or got.names is not None:
        return ""
    if got == "V2":
        return ", which libraries make of bfloat16: convert it to float32 first"
    fits = to_float32 and got.type is not np.void and np.can_cast(got, _FLOAT32)
    return ": convert it first, as .astype(numpy.float32) does" if fits else ""


class Dtypes(dict[np.dtype, np.dtype]):
    """Dtypes that an argument may have, in native byte order, and in which type each of them is computed.

    float16 is computed in float32, bool and integers as what they are, or as floats of a type.
    """

    def __init__(self, words: str, names: Iterable[str], *, integers: str | None = None) -> None:
        self.words = words
        for name in names:
            dtype = np.dtype(name)
            computed = "float32" if name == "float16" else dtype if dtype.kind == "f" else integers or dtype
            self[dtype] = np.dtype(computed)

    def of(self, name: str, got: np.dtype) -> np.dtype:
        """Return the type in which an argument is computed; TypeError where it has no such dtype."""
        # Looked up as it is first: most are native, and to find that out takes longer.
        computed = self.get(got) or self.get(got.newbyteorder("="))
        if computed is None:
            raise TypeError(f"{name}: expected {self.words}, got {got}{conversion(got, _FLOAT32 in self)}")
        return computed


FLOATS = Dtypes("dtype float16, float32 or float64", _specification.FLOATS)
INTEGERS = Dtypes("an integer dtype", _specification.INTEGERS)
NUMBERS = Dtypes("a real dtype or bool", _specification.NUMBERS)
# Integers stand for the same numbers in float64.
COORDINATES = Dtypes(
    "dtype float16, float32, float64 or an integer one", _specification.COORDINATES, integers="float64"
)

# What options are in most calls.
_USUAL = {(), (1.0,), (-math.inf, math.inf), (0.0,) * 4, (1.0,) * 4}
# Numbers below it need no question whether float32 holds them.
_ORDINARY = 1e38
# Four axes shorter than it hold numbers of 8 bytes in any case.
_USUAL_LENGTH = 1 << 15


def native(dtype: np.dtype) -> np.dtype:
    """Return a dtype in native byte order; strings of variable width have none to ask for."""
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def whole(name: str, array: np.ndarray) -> None:
    """Raise ValueError unless all numbers of a float array of one axis are integers of 64 bits."""
    numbers = array.astype(np.float64)
    wrong = ~((numbers >= -(2.0**63)) & (numbers < 2.0**63) & (numbers == np.trunc(numbers)))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"{name}: expected integers of 64 bits, got {array[row]} in row {row}")


def shape(name: str, got: Sequence[int], axes: Sequence[str | int]) -> None:
    """Raise ValueError unless the shape has these axes: a number is a wanted length, a word is any length."""
    if got == axes:
        return
    fits = len(got) == len(axes)
    for i in range(len(axes) if fits else 0):
        if type(axes[i]) is not str and axes[i] != got[i]:
            fits = False
    if not fits:
        wanted = ", ".join(str(axis) for axis in axes)
        raise ValueError(f"{name}: expected shape ({wanted}{',' if len(axes) == 1 else ''}), got {tuple(got)}")


def integer(name: str, value: Any, *, at_least: int | None = None, at_most: int | None = None) -> int:
    """Return the value as an int; TypeError if it is none, ValueError if it is out of range."""
    number = value
    # Python's own numbers are the usual case, here and in the other checks.
    if type(value) is not int:
        try:
            item = _item(value)
            if isinstance(item, bool | np.bool_):
                raise TypeError
            number = operator.index(item)
        except TypeError:
            raise TypeError(f"{name}: expected an integer, got {shown(value)}") from None
    if at_least is not None and number < at_least:
        raise ValueError(f"{name}: expected at least {at_least}, got {shown(number)}")
    if at_most is not None and number > at_most:
        raise ValueError(f"{name}: expected at most {at_most}, got {shown(number)}")
    return number


def real(
    name: str,
    value: Any,
    *,
    finite: bool = True,
    positive: bool = False,
    between: tuple[float, float] | None = None,
) -> float:
    """Return the value as a float; TypeError if it is no real number, ValueError for one that is out of range."""
    # Python's own numbers are the usual case, and the other questions take a microsecond.
    if type(value) is not float and type(value) is not int:
        given, value = value, _item(value)
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real | np.floating):
            raise TypeError(f"{name}: expected a real number, got {shown(given)}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name}: expected a number in the range of float64, got {shown(value)}") from None
    # Taken from itself, an infinity is NaN, and so is NaN.
    if number - number != 0 and (finite or number != number):
        raise ValueError(f"{name}: expected a {'finite ' if finite else ''}number, got {number}")
    if positive and number <= 0:
        raise ValueError(f"{name}: expected a number above 0, got {shown(number)}")
    if between is not None and not between[0] <= number <= between[1]:
        raise ValueError(f"{name}: expected a number from {between[0]} to {between[1]}, got {shown(number)}")
    return number


def _has_no_axes(value: Any) -> bool:
    """Whether a value is an array of no axes, of NumPy or of another library."""
    if isinstance(value, np.ndarray):
        return np.asarray(value).ndim == 0
    return getattr(value, "shape", None) == ()


def _item(value: Any) -> Any:
    """Return the number in an array of no axes, anything else as it is."""
    if type(value) is int or not _has_no_axes(value) or not hasattr(value, "item") or _plain.masks(value):
        return value
    return np.asarray(value).item() if isinstance(value, np.ndarray) else value.item()


def rounded(value: float, dtype: np.dtype) -> float:
    """Return a number as a type rounds it. Beyond its range that is infinity, without a warning."""
    # Zero is asked for here, since it has two signs, which are one to the cache.
    return value if dtype.char == "d" or value == 0 else _rounded(value, dtype)


@functools.lru_cache(256)
def _rounded(value: float, dtype: np.dtype) -> float:
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float64(value).astype(dtype))


def in_range(values: tuple[float, ...], dtype: np.dtype) -> tuple[float, ...]:
    """Return numbers with infinity for those beyond the range of a type, to which kernels round them."""
    if values in _USUAL or (max(values) < _ORDINARY and min(values) > -_ORDINARY):
        return values
    return tuple(rounded(value, dtype) for value in values)


def result_shape(name: str, shape: Sequence[int], dtype: np.dtype) -> None:
    """Raise ValueError, in the name of the argument that makes it large, for a result that no array can hold."""
    if max(shape) < _USUAL_LENGTH:
        return
    # NumPy counts an axis of no elements as one of one.
    if math.prod(max(length, 1) for length in shape) * dtype.itemsize > sys.maxsize:
        raise ValueError(f"{name}: expected a result of less than 2**63 bytes, got shape {shown(tuple(shape))}")


def items(value: Any) -> tuple[Any, ...] | None:
    """Return what is in a sequence or another iterable; None for a scalar, a text, or what has no order of its own."""
    if type(value) is tuple:
        return value
    # The usual scalars, before questions that take a microsecond.
    if value is None or type(value) is float or type(value) is int:
        return None
    scalar = isinstance(value, str | bytes | Mapping | Set) or not isinstance(value, Iterable)
    return None if scalar or _has_no_axes(value) else tuple(value)


def reals(name: str, values: Any, count: int, *, finite: bool = True) -> tuple[float, ...]:
    """Return `count` numbers as a tuple of floats."""
    numbers = items(values)
    if numbers is None:
        raise TypeError(f"{name}: expected {count} numbers, got {shown(values)}")
    if len(numbers) != count:
        raise ValueError(f"{name}: expected {count} numbers, got {len(numbers)}")
    for number in numbers:
        if (type(number) is not float and type(number) is not int) or not -1e300 < number < 1e300:
            return tuple(real(f"{name}[{i}]", number, finite=finite) for i, number in enumerate(numbers))
    # Python's own numbers, of ordinary size, are the usual case.
    return tuple(map(float, numbers))


def pair(name: str, value: Any, *, at_least: int) -> tuple[int, int]:
    """Return an int twice, or two ints, as (height, width)."""
    both = items(value)
    if both is None:
        both = (value, value)
    if len(both) != 2:
        raise ValueError(f"{name}: expected an int or (height, width), got {shown(both)}")
    first, second = both
    return integer(name, first, at_least=at_least), integer(name, second, at_least=at_least)


def flag(name: str, value: Any) -> bool:
    """Return a bool; TypeError for anything but a bool or the integers 0 and 1."""
    if type(value) is bool:
        return value
    item = _item(value)
    if isinstance(item, bool | np.bool_) or (isinstance(item, int | np.integer) and item in (0, 1)):
        return bool(item)
    raise TypeError(f"{name}: expected a bool, got {shown(value)}")


def choice(name: str, value: Any, options: Iterable[str]) -> str:
    """Return the value if it is one of the options; ValueError otherwise."""
    options = tuple(options)
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name}: expected one of {', '.join(map(repr, options))}, got {shown(value)}")
    return value


def axis(name: str, value: Any, ndim: int) -> int:
    """Return an axis as a number from 0; a 0-d array has one axis to count."""
    number = integer(name, value)
    count = max(ndim, 1)
    if not -count <= number < count:
        raise ValueError(f"{name}: expected an axis from {-count} to {count - 1}, got {shown(number)}")
    return number % count


def divisible(what: str, number: int, name: str, divisor: int) -> None:
    """Raise ValueError unless a number is a multiple of another argument."""
    if number % divisor:
        raise ValueError(f"{what}: expected a multiple of {name}, {shown(divisor)}, got {shown(number)}")
