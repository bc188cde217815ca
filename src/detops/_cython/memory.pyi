from collections.abc import Sequence

import numpy as np

# PyCapsules around C functions, see scratch.pxi.
borrow: object
give_back: object

def empty(shape: Sequence[int], dtype: np.dtype) -> np.ndarray: ...
def set_most_bytes(size: int) -> None: ...
def get_kept_bytes() -> int: ...
