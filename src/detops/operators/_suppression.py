"""Checks that all public functions of non-maximum suppression share."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops.operators import _checks
from detops.operators._call import Call
from detops.runtime import _registry

INT64 = np.dtype(np.int64)


def dtype_of(call: Call) -> np.dtype:
    """Check the dtypes of boxes and scores; return the type to compute in: the wider, and at least float32."""
    boxes = call.check_dtype(_checks.COORDINATES, "boxes")
    scores = call.check_dtype(_checks.FLOATS, "scores")
    return boxes if boxes == scores else np.dtype(np.float64)


def count_of_set(call: Call, columns: int) -> int:
    """Check the shapes of boxes, each of so many numbers, and of scores; return how many there are."""
    call.read_empty("boxes", columns)
    shape = call["boxes"].shape
    _checks.shape("boxes", shape, ("num_boxes", columns))
    count: int = shape[0]
    _checks.shape("scores", call["scores"].shape, (count,))
    return count


def labels_of(call: Call, count: int) -> Any:
    """Check the labels; return them as int64, in call's space. Floats may be labels where they are whole."""
    labels = call["labels"]
    call.check_dtype(_checks.COORDINATES, "labels")
    _checks.shape("labels", labels.shape, (count,))
    if labels.dtype.kind == "f":
        _checks.whole("labels", call.space.to_host(labels))
    return call.cast("labels", INT64)


def iou_threshold(value: Any, dtype: np.dtype) -> float:
    """Return the threshold, checked and rounded to the type that IoUs are computed in."""
    return _checks.rounded(_checks.real("iou_threshold", value, between=(0, 1)), dtype)


def score_threshold(value: Any, dtype: np.dtype, strict: bool = True) -> tuple[float, bool]:
    """Return the threshold, rounded to the type of the scores, and whether a score has to be above it.

    As MMCV has it, which is not strict, there is one only where it is above 0, and a score may be equal to it.
    """
    if value is None and strict:
        return -np.inf, False
    threshold = _checks.real("score_threshold", value, finite=False)
    return _checks.rounded(threshold, dtype) if strict or threshold > 0 else -np.inf, strict


def score_thresholds(
    value: Any, classes: int | None, dtype: np.dtype, strict: bool = True
) -> tuple[np.ndarray | None, float, bool]:
    """Return a threshold for each class, or None where one holds for all; the least of them; and whether it is strict.

    `classes` is the number of classes; None for as many as there are thresholds.
    """
    numbers = _checks.items(value)
    if numbers is None:
        return (None, *score_threshold(value, dtype, strict))
    checked = _checks.reals("score_threshold", numbers, len(numbers) if classes is None else classes, finite=False)
    thresholds = [score_threshold(number, dtype, strict)[0] for number in checked]
    return np.array(thresholds, dtype), min(thresholds, default=-np.inf), strict


def select(
    kernel: str, call: Call, dtype: np.dtype, options: tuple[Any, ...], limit: int, out: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """Run a kernel on one set of boxes, computed in a type; return the indices of at most so many that it selects."""
    selected = call.space.empty((limit,), INT64)
    kept = 0
    if selected.size:
        found = call.space.empty((1,), INT64)
        arrays = call.cast("boxes", dtype), call.cast("scores", dtype)
        _registry.kernel(kernel, call.backend, dtype)(*arrays, *options, selected, found)
        kept = call.space.to_host(found).item()
    return call.deliver(out, selected[:kept])


def limit(name: str, value: Any, count: int) -> int:
    """Return how many of `count` boxes may be selected."""
    return count if value is None else min(_checks.integer(name, value, at_least=0), count)


def offset(value: Any) -> float:
    """Return what is added to widths and heights."""
    return float(_checks.integer("offset", value, at_least=0, at_most=1))
