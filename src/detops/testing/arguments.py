"""Arguments of one call of an operator, and the parts of the strategies that draw them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

try:
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as hnp
except ImportError as error:
    raise ImportError(f"detops.testing needs hypothesis: pip install hypothesis ({error})") from error

FLOATS = ("float16", "float32", "float64")
# The numbers of arrays up to this size are drawn one by one, so that hypothesis can make a failing array smaller.
SMALL = 40
# How often an odd value is drawn, in multiples of an ordinary one.
ODD_SHARE = 2


def _every_second(array: np.ndarray) -> np.ndarray:
    """Return every second element, along each axis, of a larger array."""
    large = np.zeros([2 * length for length in array.shape], array.dtype)
    index: tuple[Any, ...] = (*[slice(None, None, 2)] * array.ndim, ...)
    view = large[index]
    view[...] = array
    return view


# A layout in memory, by name: how a C-contiguous array is laid out so.
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "contiguous": lambda array: array,
    "transposed": lambda array: array.T.copy().T,
    "every second": _every_second,
    "byte-swapped": lambda array: array.astype(array.dtype.newbyteorder()),
    "read-only": lambda array: np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape),
}


@dataclass(frozen=True)
class Arguments:
    """Arguments of one call of an operator.

    Parameters
    ----------
    arrays : dict
        The array arguments by name, C-contiguous; None for an absent one.
    options : dict
        All other arguments by name.
    layout : str
        How the arrays are to lie in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from detops.testing import Arguments
    >>> Arguments({"x": np.zeros((2, 3))}, {"axis": 0}, "transposed").given()["x"].flags.f_contiguous
    True
    """

    arrays: dict[str, np.ndarray | None]
    options: dict[str, Any] = field(default_factory=dict)
    layout: str = "contiguous"

    def given(self) -> dict[str, np.ndarray | None]:
        """Return fresh copies of the arrays in this layout."""
        lay = LAYOUTS[self.layout]
        return {name: None if array is None else lay(array.copy()) for name, array in self.arrays.items()}


def arguments(operator: str, dtypes: Sequence[str] = FLOATS, *, layouts: bool = True) -> st.SearchStrategy[Arguments]:
    """Return a strategy for valid calls of an operator.

    Sizes are small, zero included. Values are often equal, on the border of something, NaN, infinite or huge; but
    none lies so near to a decision that rounding could turn it.

    Parameters
    ----------
    operator : str
        The name of a public function of detops.
    dtypes : sequence of str
        Types of the float arrays. The integer types of `cummax`, `cummin` and `scatter_nd` may be among them.
    layouts : bool, default True
        Whether arrays also lie in memory transposed, strided, byte-swapped or read-only.

    Returns
    -------
    hypothesis.strategies.SearchStrategy
        Gives :class:`Arguments`.

    Raises
    ------
    ValueError
        If there is no such operator.

    Examples
    --------
    >>> from hypothesis import given
    >>> import detops
    >>> from detops.testing import arguments
    >>> @given(arguments("cummax"))
    ... def the_shape_stays(call):
    ...     values, indices = detops.cummax(**call.given(), **call.options)
    ...     assert values.shape == indices.shape == call.arrays["x"].shape
    >>> the_shape_stays()
    """
    from detops.testing.families import STRATEGIES

    if operator not in STRATEGIES:
        raise ValueError(f"operator: expected one of {', '.join(STRATEGIES)}, got {operator!r}")
    names = st.sampled_from(sorted(LAYOUTS) if layouts else ["contiguous"])

    @st.composite
    def calls(draw: st.DrawFn) -> Arguments:
        arrays, options = draw(STRATEGIES[operator](draw(st.sampled_from(list(dtypes)))))
        return Arguments(arrays, options, draw(names))

    return calls()


@st.composite
def array(
    draw: st.DrawFn,
    dtype: str,
    shape: tuple[int, ...],
    low: float,
    high: float,
    parts: int = 1,
    odd: Sequence[float] = (),
) -> np.ndarray:
    """Arrays of multiples of 1 / parts between two bounds, with a few odd values among them."""
    first, last = int(low * parts), int(high * parts)
    if math.prod(shape) <= SMALL:
        steps = draw(hnp.arrays(np.int64, shape, elements=st.integers(first, last + len(odd) * ODD_SHARE)))
    else:
        # Drawn one by one, the numbers of a large array would take most of the time.
        rng = np.random.default_rng(draw(st.integers(0, 2**32)))
        steps = rng.integers(first, last + len(odd) * ODD_SHARE, shape, endpoint=True)
    values = np.asarray(steps / parts)
    for i, value in enumerate(odd):
        values[(steps > last + i * ODD_SHARE) & (steps <= last + (i + 1) * ODD_SHARE)] = value
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def integers(shape: Any, low: int, high: int, dtype: str = "int64") -> st.SearchStrategy[np.ndarray]:
    """Arrays of integers from low to high."""
    return hnp.arrays(dtype, shape, elements=st.integers(low, high))


def boxes(dtype: str, shape: tuple[int, ...], extent: int = 24) -> st.SearchStrategy[np.ndarray]:
    """Boxes (..., 4) as x1, y1, x2, y2 with whole coordinates; some have no area, some are turned."""
    corners = array(dtype, (*shape, 2), 0, extent)
    sizes = array(dtype, (*shape, 2), -1, extent // 2)
    return st.tuples(corners, sizes).map(lambda both: np.concatenate([both[0], both[0] + both[1]], axis=-1))
