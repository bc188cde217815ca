"""Updates at index tuples, one scalar at a time."""

import itertools

import numpy as np


def _joined(current, update, reduction):
    if reduction == "none":
        return update
    if isinstance(current, bool):
        return current or update if reduction in ("add", "max") else current and update
    if reduction in ("add", "mul"):
        return current + update if reduction == "add" else current * update
    if current != current or update != update:
        return float("nan")
    return min(current, update) if reduction == "min" else max(current, update)


def scatter_nd(data, indices, updates, *, reduction="none"):
    data, indices, updates = np.asarray(data), np.asarray(indices), np.asarray(updates)
    depth = indices.shape[-1]
    wide = np.float64 if data.dtype.kind == "f" and reduction != "none" else object
    result = data.astype(wide)
    for position in np.ndindex(*indices.shape[:-1]):
        start = [int(i) for i in indices[position]]
        for axis, i in enumerate(start):
            if not -data.shape[axis] <= i < data.shape[axis]:
                raise IndexError(f"index {i} of axis {axis}")
        for rest in itertools.product(*map(range, data.shape[depth:])):
            target = (*start, *rest)
            update = updates[(*position, *rest)].item()
            current = result[target]
            joined = _joined(current.item() if hasattr(current, "item") else current, update, reduction)
            if data.dtype.kind in "iu":
                bits = 8 * data.dtype.itemsize
                joined %= 2**bits
                if data.dtype.kind == "i" and joined >= 2 ** (bits - 1):
                    joined -= 2**bits
            result[target] = joined
    return result if wide is np.float64 else result.astype(data.dtype)
