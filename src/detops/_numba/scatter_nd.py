"""scatter_nd over (slots, row) in memory; the check of its indices."""

from detops._core.scatter import in_range, next_offset, reduced
from detops._numba.parallel import inner, jit, parallel_for
from detops.runtime._threads import of_call


@jit
def check_loop(begin, end, indices, lengths, bad):
    """One item is one index tuple."""
    for i in range(begin, end):
        for axis in range(lengths.size):
            if not in_range(indices[i, axis], lengths[axis]):
                bad[0] = 1


@inner
def slot_of(indices, i, lengths):
    """The slot that a tuple names."""
    slot = 0
    for axis in range(lengths.size):
        slot = next_offset(slot, indices[i, axis], lengths[axis])
    return slot


@jit
def scatter_parts(begin, end, share, data, indices, updates, lengths, reduction, out):
    """One item is a range of slots: it takes its updates in their order, whatever the other parts do."""
    slots, row = out.shape
    for part in range(begin, end):
        first, last = part * share, min((part + 1) * share, slots)
        for slot in range(first, last):
            for j in range(row):
                out[slot, j] = data[slot, j]
        for i in range(indices.shape[0]):
            slot = slot_of(indices, i, lengths)
            if first <= slot < last:
                for j in range(row):
                    out[slot, j] = reduced(reduction, out[slot, j], updates[i, j])


def scatter_check(indices, lengths, bad):
    """Kernel that sets bad to 1 where an index is out of range."""
    parallel_for(check_loop, indices.shape[0], 65536, (indices, lengths), bad)


def scatter_nd(data, indices, updates, lengths, reduction, out):
    """Kernel of scatter_nd; the indices have passed the check."""
    slots, row = out.shape
    # Every part looks at all tuples: that pays where a row is longer than a look.
    parts = max(1, min(of_call(), slots, updates.size // 65536)) if row > 16 else 1
    share = -(-slots // parts)
    parallel_for(scatter_parts, parts, 1, (share, data, indices, updates, lengths, reduction), out)
