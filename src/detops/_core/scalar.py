"""Functions of the number type. ``_cython/scalar.pxi`` has the same functions in C; Numba and CUDA compile these."""

import numpy as np

real = float
element = float


def typed(value, like):
    """``value`` as a number of the type of ``like``: a bare constant would make float32 data float64."""
    return type(like)(value)


def exp(x):
    """e to the ``x`` in the type of ``x``; inf where that overflows."""
    return np.exp(x)


def log(x):
    """Natural logarithm in the type of ``x``; -inf at 0 and NaN below."""
    return np.log(x)


def atan(x):
    """Arc tangent in the type of ``x``, from -pi / 2 to pi / 2."""
    return np.arctan(x)


def sqrt(x):
    """Square root in the type of ``x``; NaN below 0."""
    return np.sqrt(x)


def product(a, b):
    """``a * b`` rounded by itself: no compiler may fuse it with a sum that it enters."""
    return a * b


def quotient(a, b):
    """Whole quotient of whole numbers, ``a`` at least 0 and ``b`` above 0: else it differs between Python and C."""
    return a // b
