"""The decode of boxes, written once over operations that symbols, NumPy's arrays and nodes of ONNX and TensorFlow have.

``detops._core.boxes`` has the one that kernels compute.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeVar

from detops.graph._schema import CORNER

T = TypeVar("T")

Operation = Literal["Add", "Sub", "Mul", "Div", "Min", "Max", "Exp", "Half"]


class Compute(Protocol[T]):
    """What computes, or writes down what is to be computed, under a name that no other step has."""

    def __call__(self, operation: Operation, name: str, *operands: T) -> T:
        """Return the result of an operation."""


def unscale(compute: Compute[T], predictions: T, scales: T, means: T, suffix: str = "") -> T:
    """Turn what a network predicts into shift and growth."""
    return compute("Add", f"shifted{suffix}", compute("Div", f"scaled{suffix}", predictions, scales), means)


def bound_growth(compute: Compute[T], growth: T, upper: T, lower: T | None = None) -> T:
    """Bound the growth from below, where there is such a bound, then from above."""
    raised = growth if lower is None else compute("Max", "raised", growth, lower)
    return compute("Min", "bounded", raised, upper)


def corners(
    compute: Compute[T], shift: T, growth: T, first: T, last: T, anchor_form: str = CORNER, offset: T | None = None
) -> tuple[T, T]:
    """Return the first and the last corner, in tensorpack's order: bit-equal to the graph that it replaces there.

    The anchor is [first, last], or has these two as its center and size; what is None is not computed with.
    """
    center, size = first, last
    if anchor_form == CORNER:
        size = compute("Sub", "size", last, first)
        if offset is not None:
            size = compute("Add", "counted", size, offset)
        center = compute("Half", "center", compute("Add", "corner_sum", last, first))
    new_size = compute("Mul", "new_size", compute("Exp", "factor", growth), size)
    if offset is not None:
        new_size = compute("Sub", "new_span", new_size, offset)
    half_size = compute("Half", "half_size", new_size)
    new_center = compute("Add", "new_center", compute("Mul", "moved", shift, size), center)
    return compute("Sub", "low", new_center, half_size), compute("Add", "high", new_center, half_size)
