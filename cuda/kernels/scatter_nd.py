"""scatter_nd over (slots, row) in memory; the check of its indices."""

import numpy as np

from detops._core.scatter import in_range, next_offset, reduced
from detops._cuda.device import cuda, empty, jit, launch, to_device


@jit
def check(indices, lengths, bad):
    """One item is one index tuple."""
    for i in range(cuda.grid(1), indices.shape[0], cuda.gridsize(1)):
        for axis in range(lengths.size):
            if not in_range(indices[i, axis], lengths[axis]):
                bad[0] = 1


@jit
def name_slots(indices, lengths, slots):
    """One item is one index tuple."""
    for i in range(cuda.grid(1), indices.shape[0], cuda.gridsize(1)):
        slot = 0
        for axis in range(lengths.size):
            slot = next_offset(slot, indices[i, axis], lengths[axis])
        slots[i] = slot


@jit
def copy(data, out):
    """One item is one element."""
    row = out.shape[1]
    for item in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[item // row, item % row] = data[item // row, item % row]


@jit
def scatter(order, starts, slots, updates, reduction, out):
    """One item is one element of one slot: it takes its updates in their order."""
    row = out.shape[1]
    for item in range(cuda.grid(1), (starts.size - 1) * row, cuda.gridsize(1)):
        group, j = item // row, item % row
        slot = slots[order[starts[group]]]
        current = out[slot, j]
        for k in range(starts[group], starts[group + 1]):
            current = reduced(reduction, current, updates[order[k], j])
        out[slot, j] = current


def scatter_check(indices, lengths, bad):
    """Kernel that sets bad to 1 where an index is out of range."""
    launch(check, indices.shape[0], indices, lengths, bad)


def scatter_nd(data, indices, updates, lengths, reduction, out):
    """Kernel of scatter_nd; the indices have passed the check.

    Updates of one slot must come in order, which atomic operations do not promise: the host sorts the tuples by slot.
    """
    launch(copy, out.size, data, out)
    if updates.size == 0:
        return
    slots = empty(indices.shape[0], np.int64)
    launch(name_slots, indices.shape[0], indices, lengths, slots)
    named = slots.copy_to_host()
    order = np.argsort(named, kind="stable")
    starts = np.flatnonzero(np.diff(named[order], prepend=-1, append=out.shape[0]))
    groups = starts.size - 1
    launch(scatter, groups * out.shape[1], to_device(order), to_device(starts), slots, updates, reduction, out)
