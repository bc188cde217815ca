"""What the overlaps of two sets of boxes, upright or turned, share."""

from typing import Any

import numpy as np

from detops.operators import _checks
from detops.operators._call import Call, Results

_HALF = np.dtype(np.float16)


def two_sets(call: Call, out: Any, numbers: int, pairs: bool, computed: np.dtype | None = None) -> Results:
    """Check two sets of boxes, of so many numbers each, and return where their overlaps go.

    They are computed in the wider dtype of the two, and at least float32, unless told otherwise.
    """
    dtype = np.promote_types(*(call.check_dtype(_checks.COORDINATES, name) for name in ("boxes_a", "boxes_b")))
    call.read_empty("boxes_a", numbers)
    call.read_empty("boxes_b", numbers)
    a, b = call["boxes_a"], call["boxes_b"]
    _checks.shape("boxes_a", a.shape, ("num_a", numbers))
    rows = a.shape[0]
    _checks.shape("boxes_b", b.shape, (rows if pairs else "num_b", numbers))
    given = _HALF if a.dtype.char == b.dtype.char == _HALF.char else dtype
    return call.results(out, ((rows,) if pairs else (rows, b.shape[0]), given, computed or dtype))
