"""Running maximum and minimum, element by element."""

import numpy as np


def _scan(x, axis, beats):
    x = np.asarray(x)
    values, indices = np.array(x), np.zeros(x.shape, np.int64)
    if x.ndim == 0:
        return values, indices
    runs, found, where = (np.moveaxis(array, axis, -1) for array in (x, values, indices))
    for at in np.ndindex(*runs.shape[:-1]):
        for i in range(1, runs.shape[-1]):
            candidate, best = runs[at][i], found[at][i - 1]
            newer = candidate != candidate or (best == best and beats(candidate, best))
            found[at][i] = candidate if newer else best
            where[at][i] = i if newer else where[at][i - 1]
    return values, indices


def cummax(x, axis=-1):
    return _scan(x, axis, lambda candidate, best: candidate >= best)


def cummin(x, axis=-1):
    return _scan(x, axis, lambda candidate, best: candidate <= best)
