"""Checks of arguments while code is compiled, with the public functions' messages, and those left to the run.

A function here gets an argument's name and its Numba type, or its default; it raises TypingError, or returns a
function for compiled code that turns the value into what a loop takes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numba
import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.np.numpy_support import as_dtype

from detops._numba.parallel import inlined, inner
from detops.numba._operator import Unknown
from detops.operators import _checks

LARGEST = np.iinfo(np.int64).max

# A list of Python's, and one of Numba's own.
LISTS = types.List | types.ListType


def refuse(name: str, wanted: str, got: Any) -> NoReturn:
    """Raise TypingError in the words that the public functions use."""
    raise TypingError(f"{name}: expected {wanted}, got {got}")


def kind(got: Any) -> types.Type:
    """The type of an argument, be it given, left out, or a constant."""
    if isinstance(got, types.Omitted):
        got = got.value
    return types.unliteral(got) if isinstance(got, types.Type) else numba.typeof(got)


def absent(got: Any) -> bool:
    """Whether an argument is None."""
    return isinstance(kind(got), types.NoneType)


# Arrays


def array(name: str, got: Any, axes: Sequence[str] | None = None) -> types.Array:
    """Return the type of an array; with as many axes as are named."""
    found = kind(got)
    if not isinstance(found, types.Array):
        refuse(name, "an array", found)
    if axes is not None and found.ndim != len(axes):
        refuse(name, f"shape ({', '.join(axes)}{',' * (len(axes) == 1)})", f"an array of {found.ndim} axes")
    return found


def _dtype(name: str, got: types.Array, allowed: _checks.Dtypes, words: str) -> np.dtype:
    """Return the dtype of an array, one of those allowed."""
    found = numpy_dtype(got.dtype)
    if found == np.float16:
        words += ": Numba compiles no float16 for the CPU"
    if found is None or found == np.float16 or found not in allowed:
        refuse(name, words, got.dtype)
    return found


def numpy_dtype(dtype: types.Type) -> np.dtype | None:
    """The dtype of NumPy of an array's elements; None where there is none."""
    try:
        return as_dtype(dtype)
    except NotImplementedError:
        return None


def floats(name: str, got: types.Array) -> np.dtype:
    """Return the dtype of an array of floats."""
    return _dtype(name, got, _checks.FLOATS, "dtype float32 or float64")


def coordinates(name: str, got: types.Array) -> np.dtype:
    """Return the dtype that an array of coordinates is computed in, which is float64 for integers."""
    found = _dtype(name, got, _checks.COORDINATES, "dtype float32, float64 or an integer one")
    return found if found.kind == "f" else np.dtype(np.float64)


def integers(name: str, got: types.Array) -> np.dtype:
    """Return the dtype of an array of integers."""
    return _dtype(name, got, _checks.INTEGERS, "an integer dtype")


def real_numbers(name: str, got: types.Array) -> np.dtype:
    """Return the dtype of an array of numbers or bool."""
    return _dtype(name, got, _checks.NUMBERS, "a real dtype or bool")


def cast(got: types.Array, dtype: np.dtype) -> Callable[..., Any]:
    """Return a function that makes such an array C-contiguous and of a dtype; the array itself if it is so."""
    element = dtype.type
    same = numpy_dtype(got.dtype) == dtype
    if got.layout == "C":
        return inlined(lambda array: array) if same else inlined(lambda array: array.astype(element))
    if same:
        return inlined(lambda array: np.ascontiguousarray(array))
    return inlined(lambda array: np.ascontiguousarray(array).astype(element))


@inner
def _write_whole(numbers, integers):
    """Write floats as int64; return whether all are integers of 64 bits."""
    for i in range(numbers.size):
        number = numbers[i]
        if not (number >= -9223372036854775808.0 and number < 9223372036854775808.0 and number == np.trunc(number)):
            return False
        integers[i] = np.int64(number)
    return True


def whole(name: str, got: types.Array) -> Callable[..., Any]:
    """Return a function that makes an array of one axis, of integers or whole floats, an array of int64."""
    if coordinates(name, got) != numpy_dtype(got.dtype):
        return cast(got, np.dtype(np.int64))
    not_whole = f"{name}: expected integers of 64 bits"

    @inlined
    def convert(array):
        integers = np.empty(array.shape[0], np.int64)
        if not _write_whole(array, integers):
            raise ValueError(not_whole)
        return integers

    return convert


# Numbers. A boolean is none, as in the public functions.


def _scalar(name: str, got: Any, allowed: tuple[type, ...], wanted: str) -> Any:
    found = kind(got)
    inner = found.type if isinstance(found, types.Optional) else found
    if isinstance(inner, types.Boolean) or not isinstance(inner, allowed):
        refuse(name, wanted, found)
    return inner


def _present(got: Any) -> Callable[..., Any]:
    """Return a function for a number that is known not to be None, which Numba casts where it computes with it."""
    if isinstance(kind(got), types.Optional):
        return inlined(lambda value: +value)
    return inlined(lambda value: value)


def integer(name: str, got: Any, at_least: int | None = None, at_most: int | None = None) -> Callable[..., Any]:
    """Return a function that makes an integer an int64, one that is too large the largest."""
    found = _scalar(name, got, (types.Integer,), "an integer")
    wide = not found.signed and found.bitwidth == 64
    lowest = -LARGEST - 1 if at_least is None else at_least
    highest = LARGEST if at_most is None else at_most
    too_low, too_high = f"{name}: expected at least {at_least}", f"{name}: expected at most {at_most}"
    present = _present(got)

    @inlined
    def convert(value):
        number = np.int64(present(value))
        if wide and number < 0:
            number = np.int64(LARGEST)
        if number < lowest:
            raise ValueError(too_low)
        if number > highest:
            raise ValueError(too_high)
        return number

    return convert


def real(
    name: str,
    got: Any,
    *,
    finite: bool = True,
    positive: bool = False,
    between: tuple[float, float] | None = None,
) -> Callable[..., Any]:
    """Return a function that makes a real number a float64, and raises ValueError for one that is out of range."""
    _scalar(name, got, (types.Integer, types.Float), "a real number")
    low, high = between or (-np.inf, np.inf)
    wanted = f"a number from {low} to {high}" if between else f"a {'finite ' * finite}number{' above 0' * positive}"
    message = f"{name}: expected {wanted}"
    present = _present(got)

    @inlined
    def convert(value):
        number = np.float64(present(value))
        if not low <= number <= high or (finite and np.isinf(number)) or (positive and number <= 0):
            raise ValueError(message)
        return number

    return convert


def flag(name: str, got: Any) -> Callable[..., Any]:
    """Return a function that makes a bool, or 0 or 1, a bool."""
    found = kind(got)
    if isinstance(found, types.Boolean):
        return inlined(lambda value: value)
    if not isinstance(found, types.Integer):
        refuse(name, "a bool", found)
    message = f"{name}: expected a bool"

    @inlined
    def convert(value):
        if value != 0 and value != 1:
            raise TypeError(message)
        return value == 1

    return convert


def constant(name: str, got: Any) -> bool:
    """Return a bool, or 0 or 1, which must be a constant, or an argument of the code that is compiled."""
    value = got.value if isinstance(got, types.Omitted) else got
    if isinstance(value, types.Literal):
        value = value.literal_value
    if isinstance(value, types.Boolean | types.Integer):
        raise Unknown(name)
    if not isinstance(value, bool | int) or value not in (0, 1):
        refuse(name, "a bool", kind(got))
    return bool(value)


def text(name: str, got: Any, options: Iterable[str]) -> str:
    """Return a text, which must be a constant, or an argument of the code that is compiled."""
    value = got.value if isinstance(got, types.Omitted) else got
    if isinstance(value, types.StringLiteral):
        value = value.literal_value
    if isinstance(value, types.UnicodeType):
        raise Unknown(name)
    if not isinstance(value, str) or value not in options:
        refuse(name, f"one of {', '.join(map(repr, options))}", repr(value) if isinstance(value, str) else kind(got))
    return value


# Tuples


def _items(got: Any) -> Sequence[types.Type] | None:
    found = kind(got)
    if not isinstance(found, types.BaseTuple):
        return None
    # A tuple's type is a sequence of its items' types, which Numba's annotations do not say.
    return [types.unliteral(item) for item in found]  # type: ignore[attr-defined]


def whole_numbers(name: str, got: Any, counts: Sequence[int], wanted: str, at_least: int) -> Callable[..., Any]:
    """Return a function that makes an integer a pair of int64, and a tuple of integers a tuple of int64."""
    items = _items(got)
    if items is None:
        each = integer(name, got, at_least)
        return inlined(lambda value: (each(value), each(value)))
    if len(items) not in counts:
        refuse(name, wanted, kind(got))
    for item in items:
        integer(name, item, at_least)
    each = integer(name, types.int64, at_least)
    if len(items) == 2:
        return inlined(lambda value: (each(value[0]), each(value[1])))
    return inlined(lambda value: (each(value[0]), each(value[1]), each(value[2]), each(value[3])))


def pair(name: str, got: Any, at_least: int) -> Callable[..., Any]:
    """Return a function that makes an integer, or two, two of int64."""
    return whole_numbers(name, got, (2,), "an int or (height, width)", at_least)


def four_reals(name: str, got: Any, dtype: np.dtype) -> Callable[..., Any]:
    """Return a function that makes a tuple of four numbers one of this dtype."""
    items = _items(got)
    if items is None or len(items) != 4:
        refuse(name, "4 numbers", kind(got))
    for item in items:
        real(name, item)
    each, element = real(name, types.float64), dtype.type

    @inlined
    def convert(value):
        return element(each(value[0])), element(each(value[1])), element(each(value[2])), element(each(value[3]))

    return convert


def several(got: Any) -> bool:
    """Whether an argument holds numbers, in a tuple, a list or an array."""
    found = kind(got)
    return isinstance(found, types.BaseTuple | LISTS) or (isinstance(found, types.Array) and found.ndim > 0)


def reals(name: str, got: Any) -> Callable[..., Any]:
    """Return a function that makes an array of float64 of real numbers, as `several` has them; they may be infinite."""
    items = _items(got)
    if items is None:
        items = [got.dtype if isinstance(got, LISTS) else array(name, got, ("count",)).dtype]
    for item in items:
        real(name, item, finite=False)
        if item == types.float16:
            refuse(name, "real numbers, of which Numba compiles no float16 for the CPU", item)
    if not items:
        return inlined(lambda values: np.empty(0, np.float64))
    each = real(name, types.float64, finite=False)

    @inlined
    def convert(values):
        numbers = np.asarray(values).astype(np.float64)
        for number in numbers:
            each(number)
        return numbers

    return convert


def optional(got: Any, check: Callable[..., Callable[..., Any]], name: str, **limits: Any) -> Callable[..., Any]:
    """As a check, for an argument that may be None, which stays None."""
    if absent(got):
        return inlined(lambda value: None)
    checked = check(name, got, **limits)
    return inlined(lambda value: None if value is None else checked(value))
