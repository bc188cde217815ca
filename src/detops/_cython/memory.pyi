from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

_Made = TypeVar("_Made")

# PyCapsules around C functions, see scratch.pxi and allocate.pxi.
borrow: object
give_back: object
allocate: object
allocate_zeroed: object
reallocate: object

def empty(shape: Sequence[int], dtype: np.dtype) -> np.ndarray: ...
def set_most_bytes(size: int) -> None: ...
def with_room(make: Callable[..., _Made], *arguments: Any, **options: Any) -> _Made: ...
def get_kept_bytes() -> int: ...
