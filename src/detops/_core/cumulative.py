# The order of torch's cummax and cummin: a tie goes to the later element, and a NaN beats everything. No branch (an
# `or` would be one), so that a compiler can compare a vector of elements.
import cython

if not cython.compiled:
    from detops._core.scalar import element


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def takes_over_max(candidate: element, current: element) -> cython.bint:
    """Whether a later candidate becomes the running maximum."""
    return (candidate >= current) | (candidate != candidate)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def takes_over_min(candidate: element, current: element) -> cython.bint:
    """Whether a later candidate becomes the running minimum."""
    return (candidate <= current) | (candidate != candidate)
