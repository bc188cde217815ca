# Where an update of scatter_nd goes, and how it joins what is there.
import cython

if not cython.compiled:
    from detops._codes import Reduction
    from detops._core.scalar import element


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def in_range(index: cython.Py_ssize_t, length: cython.Py_ssize_t) -> cython.bint:
    """Whether an index names an element of an axis, from its start or, where it is negative, from its end."""
    return (index >= -length) & (index < length)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def next_offset(offset: cython.Py_ssize_t, index: cython.Py_ssize_t, length: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The offset with one more axis: start with 0, and give the axes from the outermost on."""
    return offset * length + (index + length if index < 0 else index)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def reduced(reduction: cython.Py_ssize_t, current: element, update: element) -> element:
    """An element with an update, which replaces it where nothing else is said; of minima and maxima a NaN wins."""
    if reduction == Reduction.ADD:
        return current + update
    if reduction == Reduction.MUL:
        return current * update
    if reduction == Reduction.MIN:
        return update if (update < current) | (update != update) else current
    if reduction == Reduction.MAX:
        return update if (update > current) | (update != update) else current
    return update
