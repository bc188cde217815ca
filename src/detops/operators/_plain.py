"""Arguments as arrays of NumPy's own class: what a subclass makes of its shape or its elements ends here."""

from typing import Any

import numpy as np

from detops.runtime import _memory


def masks(value: Any) -> bool:
    """Whether an array masks some of its elements: one of ``numpy.ma``, or of a class that fills as they do."""
    kind = type(value)
    if kind is np.ndarray or not (hasattr(kind, "mask") and hasattr(kind, "filled")):
        return False
    mask = np.asarray(value.mask)
    return bool(mask.any()) if mask.dtype.names is None else any(mask.tobytes())


def _refuse_masked(name: str, value: Any) -> None:
    """Raise TypeError for an array, or a list of arrays or elements, that masks some of its elements."""
    if isinstance(value, np.ndarray):
        if masks(value):
            raise TypeError(f"{name}: expected no masked elements, got some: fill them first, as .filled(value) does")
    elif isinstance(value, list | tuple):
        for item in value:
            if type(item) is not float and type(item) is not int:
                _refuse_masked(name, item)


def array(name: str, value: Any) -> np.ndarray:
    """Return an argument as an array of NumPy's own class, without a copy where that is possible.

    The memory and dtype of a subclass's array count, not its attributes and operators: a check that asked these
    would be told what its author likes, and a kernel would read out of bounds.
    """
    if type(value) is np.ndarray:
        return value
    _refuse_masked(name, value)
    try:
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            return np.from_dlpack(value)
        return _memory.with_room(np.asarray, value)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise TypeError(f"{name}: expected an array, got {type(value).__name__} ({error})") from error
