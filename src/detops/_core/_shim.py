"""Stand-in for the module ``cython`` where the core runs as plain Python, under Numba or on CUDA: does nothing."""

compiled = False
Py_ssize_t = bint = int


def _same(function):
    return function


cfunc = inline = nogil = _same


def exceptval(check=False):
    return _same
