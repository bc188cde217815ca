"""The numeric check: a proved subgraph and its replacement must agree on random boxes, in a real runtime.

The proof has no need of it. It is a second net: for operators that we understand otherwise than a runtime, for
arithmetic that cancels on paper and not in floats, and for mistakes of our own.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops.graph._decode import Operation, bound_growth, corners, unscale
from detops.graph._finding import Refusal
from detops.graph._schema import CENTER, ONES, ZEROS, Parameters
from detops.graph.check import _run_onnx, _run_tf
from detops.graph.model._graph import Graph
from detops.graph.ops._evaluate import evaluate, evaluate_all, integers_in
from detops.graph.ops._ops import Run
from detops.graph.proof._prove import SWAPPED, Proof

Array = NDArray[Any]
Runner = Callable[[Array, Array], Array]
Sizes = tuple[int, ...]

SEED = 20240607
ULPS = 16
MAX_RUNS = 40
MAX_ELEMENTS = 1 << 18  # of one run
MAX_FIXED = 1 << 24  # of an input whose size the model states
SCALES = (1.0, 200.0)  # of the boxes, in turn: a sum with a large number swallows small ones


@dataclass(frozen=True)
class _Pair:
    """The subgraph and the fused node, in one runtime and one dtype."""

    before: Runner
    after: Runner
    dtype: np.dtype[Any]
    name: str
    optional: bool = False  # what the runtime cannot run is no fault


def check(graph: Graph, proof: Proof) -> str:
    """Compare at many sizes; raise `Refusal` where the two differ. Return the name of what ran them."""
    if any(math.prod(dim for dim in shape if dim is not None) > MAX_FIXED for shape in proof.shapes):
        raise Refusal("numeric check: the model states more boxes than can be tried", depth=8)
    pairs = [pair for make in _pairs(graph, proof) if (pair := make()) is not None]
    sizes = list(islice(_sizes(graph, proof), MAX_RUNS))
    for pair in pairs:
        for number, shapes in enumerate(sizes):
            _compare(pair, proof, shapes, number)
    return pairs[0].name


def _compare(pair: _Pair, proof: Proof, shapes: tuple[Sizes, Sizes], number: int) -> None:
    random = np.random.default_rng(SEED + number)
    scale = SCALES[number % 2]
    anchors = proof.made.anchors if proof.made else _boxes(random, shapes[1], proof, scale)
    anchors = anchors.astype(pair.dtype)
    predictions = _predictions(random, shapes[0], proof).astype(pair.dtype)
    try:
        expected = pair.before(predictions, anchors)
    except Refusal:
        if number >= 2 or pair.optional:
            return  # the graph itself doesn't run at this size, or not in this dtype
        raise
    got = pair.after(predictions, anchors)
    if expected.shape != got.shape or expected.dtype != got.dtype:
        raise Refusal(
            f"numeric check: the output is {expected.dtype} {expected.shape}, and {got.dtype} {got.shape} fused",
            depth=9,
        )
    slack = tolerance(predictions, anchors, proof.parameters, _eps(pair, proof))
    with np.errstate(all="ignore"):
        wrong = ~((np.abs(expected.astype(np.float64) - got) <= slack) | (expected == got))
    if wrong.any():
        element = tuple(int(index[0]) for index in np.nonzero(wrong))
        raise Refusal(f"numeric check: element {element} is {expected[element]!r}, and {got[element]!r} fused", depth=9)


def _eps(pair: _Pair, proof: Proof) -> float:
    """Return the relative error of one operation; in float64, that of scales and means in the node's attributes."""
    if not pair.optional:
        return float(np.finfo(pair.dtype).eps)
    exact = proof.parameters.scales == ONES and proof.parameters.means == ZEROS and proof.made is None
    return float(2.0**-44 if exact else np.finfo(np.float32).eps)


def tolerance(predictions: Array, anchors: Array, values: Parameters, eps: float) -> NDArray[np.float64]:
    """Return how far two orders of the arithmetic may be apart: a few units in the last place of the largest term."""
    rows = np.moveaxis(predictions.astype(np.float64), values.axis, -1)
    boxes = np.moveaxis(anchors.astype(np.float64), values.axis, -1)[..., None, :]
    grouped = rows.reshape(*rows.shape[:-1], -1, 4)
    scaled = grouped / np.array(values.scales) + np.array(values.means)
    size = np.abs(boxes[..., 2:] - (0 if values.anchor_form == CENTER else boxes[..., :2])) + values.offset
    inner = np.clip(scaled[..., 2:], values.lower_bound, values.upper_bound)
    # an exponential is as inexact as its argument is large
    growth = np.exp(inner) * (1 + np.abs(scaled[..., 2:])) * size
    shift = (1 + np.abs(scaled[..., :2])) * size
    largest = np.abs(boxes).max(axis=-1)[..., None] + shift + growth
    slack = ULPS * eps * largest.max(axis=-1, keepdims=True)
    return np.moveaxis(np.broadcast_to(slack, grouped.shape).reshape(rows.shape), -1, values.axis)


def _sizes(graph: Graph, proof: Proof) -> Iterator[tuple[Sizes, Sizes]]:
    """Yield pairs of shapes: sizes that differ, that are equal, each 1, and next to every integer of the subgraph."""
    ours, theirs = proof.shapes
    open_axes = [axis for axis, dim in enumerate(ours) if dim is None]

    def shapes(sizes: Sequence[int]) -> tuple[Sizes, Sizes]:
        filled = dict(zip(open_axes, sizes, strict=True))
        left = tuple(filled.get(axis, dim) for axis, dim in enumerate(ours))
        missing = len(ours) - len(theirs)
        right = tuple(filled.get(axis + missing) if dim is None else dim for axis, dim in enumerate(theirs))
        return left, right  # type: ignore[return-value]

    if not open_axes:
        yield shapes(())
        yield shapes(())
        return
    usual = [(7 if len(ours) < 3 else 3) + number for number in range(len(open_axes))]
    yield shapes(usual)
    yield shapes([size + 4 for size in reversed(usual)])
    yield shapes([6] * len(open_axes))
    yield shapes([1] * len(open_axes))
    for axis in range(len(open_axes)):
        yield shapes([*usual[:axis], 1, *usual[axis + 1 :]])
    small = [2] * len(open_axes)
    for number in _telling(graph, proof, shapes(usual)):
        for axis in range(len(open_axes)):
            pair = shapes([*small[:axis], number, *small[axis + 1 :]])
            if math.prod(pair[0]) <= MAX_ELEMENTS:
                yield pair


def _telling(graph: Graph, proof: Proof, shapes: tuple[Sizes, Sizes]) -> list[int]:
    """Return the sizes next to the integers of the subgraph, the large ones first: small ones are tried anyway."""
    given = {
        name: proof.seen(name, np.zeros(shape, proof.dtype))
        for name, shape in zip((proof.box_predictions, proof.anchors), shapes, strict=True)
    }
    values = evaluate_all(graph, Run(), proof.nodes, given)
    found = integers_in(graph, proof.nodes, values)
    sizes = {number + step for number in found for step in (-1, 0, 1) if 8 < number <= MAX_ELEMENTS}
    return sorted(sizes, reverse=True)


def _boxes(random: np.random.Generator, shape: Sizes, proof: Proof, scale: float) -> Array:
    axis = proof.parameters.axis
    values = np.moveaxis(random.uniform(-0.1, 1, shape) * scale, axis, -1)
    first = 0 if proof.parameters.anchor_form == CENTER else values[..., :2]
    values[..., 2:] = first + random.uniform(0.01, 0.5, values[..., 2:].shape) * scale
    return np.ascontiguousarray(np.moveaxis(values, -1, axis)).astype(proof.dtype)


def _predictions(random: np.random.Generator, shape: Sizes, proof: Proof) -> Array:
    """Draw predictions on both sides of the bounds, and not so large that half precision overflows."""
    values = proof.parameters
    rows = np.moveaxis(random.normal(0, 0.7, shape), values.axis, -1)
    grouped = rows.reshape(*rows.shape[:-1], -1, 4)
    grouped[..., 2:] = random.uniform(-3, 3, grouped[..., 2:].shape)
    for bound, side in ((values.decode_clip, 1), (values.lower_clip, -1)):
        if bound is not None and abs(bound) < (5 if proof.dtype.itemsize == 2 else 20):
            near = random.random(grouped[..., 2:].shape) < 0.3
            grouped[..., 2:][near] = bound + side * random.uniform(-0.5, 2, int(near.sum()))
    grouped = (grouped - np.array(values.means)) * np.array(values.scales)
    return np.ascontiguousarray(np.moveaxis(grouped.reshape(rows.shape), -1, values.axis)).astype(proof.dtype)


def _pairs(graph: Graph, proof: Proof) -> Iterator[Callable[[], _Pair | None]]:
    """Yield what makes the pairs to compare."""
    if graph.dialect == "onnx":
        yield partial(_onnx_pair, graph, proof, optional=False)
        if proof.dtype != np.float64:
            yield partial(_onnx_pair, graph, proof, optional=True)
    else:
        yield partial(_tensorflow_pair, graph, proof)


def _onnx_pair(graph: Graph, proof: Proof, optional: bool) -> _Pair | None:
    """Return the pair for ONNX Runtime (or ONNX's evaluator); an optional one computes in float64."""
    try:
        before, after = _run_onnx.models(graph, proof)
        if optional:
            before = _run_onnx.in_double(before)
            after = _run_onnx.models(graph, replace(proof, dtype=np.dtype(np.float64)))[1]
        (first, name), (second, _) = (_run_onnx.runner(model, proof) for model in (before, after))
    except Exception as error:
        if optional:
            return None
        raise _cannot(error) from error
    dtype = np.dtype(np.float64) if optional else proof.dtype
    return _Pair(_as_seen(first, proof), _counting(second, proof), dtype, name, optional)


def _tensorflow_pair(graph: Graph, proof: Proof) -> _Pair:
    """Return the pair for TensorFlow where it is installed, else for NumPy."""
    if importlib.util.find_spec("tensorflow") is None:
        fused = partial(formula, values=proof.parameters)
        return _Pair(_as_seen(_numpy_runner(graph, proof), proof), _counting(fused, proof), proof.dtype, "numpy")
    try:
        (first, name), (second, _) = (_run_tf.runner(each, proof) for each in _run_tf.graph_defs(graph, proof))
    except Exception as error:
        raise _cannot(error) from error
    return _Pair(_as_seen(first, proof), _counting(second, proof), proof.dtype, name)


def _as_seen(run: Runner, proof: Proof) -> Runner:
    """Return a runner of the subgraph that takes and gives what the node does, without what stands around that."""

    def seen(left: Array, right: Array) -> Array:
        result = run(proof.seen(proof.box_predictions, left), proof.seen(proof.anchors, right))
        if proof.swapped:
            result = np.take(result, SWAPPED, axis=proof.parameters.axis)
        return result.reshape(left.shape) if proof.tail else result

    return _guarded(seen)


def _counting(run: Runner, proof: Proof) -> Runner:
    """Return a runner of the node that takes the anchors of the subgraph, to which the fused graph adds something."""
    added = proof.corners_added
    if added is None:
        return _guarded(run)
    return _guarded(lambda left, right: run(left, right + added.astype(right.dtype)))


def _guarded(run: Runner) -> Runner:
    """Turn whatever a runtime raises into a refusal: what cannot be run cannot be checked."""

    def guarded(left: Array, right: Array) -> Array:
        try:
            return run(left, right)
        except Exception as error:
            raise _cannot(error) from error

    return guarded


def _cannot(error: Exception) -> Refusal:
    words = " ".join(str(error).split())
    return Refusal(f"numeric check: the runtime cannot run it ({words[:200]})", depth=9)


def _numpy_runner(graph: Graph, proof: Proof) -> Runner:
    """Run the subgraph with the operators of the proof on plain arrays."""

    def run(left: Array, right: Array) -> Array:
        given = {proof.box_predictions: left, proof.anchors: right}
        return np.asarray(evaluate(graph, Run(), proof.nodes, given, proof.decoded_boxes))

    return run


def formula(predictions: Array, anchors: Array, values: Parameters) -> Array:
    """Return the decode as NumPy computes it, in the dtype of the boxes."""
    dtype = predictions.dtype
    rows = np.moveaxis(predictions, values.axis, -1)
    boxes = np.moveaxis(anchors, values.axis, -1)[..., None, :]
    grouped = rows.reshape(*rows.shape[:-1], -1, 4)
    grouped = unscale(_compute, grouped, np.array(values.scales, dtype), np.array(values.means, dtype))
    upper, lower = np.array(values.upper_bound, dtype), np.array(values.lower_bound, dtype)
    growth = bound_growth(_compute, grouped[..., 2:], upper, lower)
    ends = boxes[..., :2], boxes[..., 2:]
    offset = np.array(values.offset, dtype) if values.offset else None
    both = corners(_compute, grouped[..., :2], growth, *ends, values.anchor_form, offset)
    return np.moveaxis(np.concatenate(both, axis=-1).reshape(rows.shape), -1, values.axis)


OPERATIONS: dict[str, Callable[..., Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Min": np.minimum,
    "Max": np.maximum,
    "Exp": np.exp,
    "Half": lambda value: value * value.dtype.type(0.5),
}


def _compute(operation: Operation, name: str, *operands: Array) -> Array:
    return OPERATIONS[operation](*operands)
