"""The numeric check: a proved subgraph and its replacement must agree on random boxes, in a real runtime."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops.graph import _run_onnx, _run_tf
from detops.graph._evaluate import evaluate
from detops.graph._finding import Refusal
from detops.graph._ops import Run
from detops.graph._prove import Proof
from detops.graph._schema import Parameters
from detops.graph._view import Graph

Array = NDArray[Any]
Runner = Callable[[Array, Array], Array]

SEED = 20240607
ULPS = 32


def check(graph: Graph, proof: Proof) -> None:
    """Compare at two sizes that the proof didn't use; raise `Refusal` where the two differ."""
    runners = [_guarded(make) for make in _runners(graph, proof)]
    for number, (left, right) in enumerate(_other_sizes(proof)):
        random = np.random.default_rng(SEED + number)
        anchors = _boxes(random, right, proof)
        predictions = _predictions(random, left, proof)
        expected, got = (run(predictions, anchors) for run in runners)
        if expected.shape != got.shape or expected.dtype != got.dtype:
            raise Refusal(
                f"numeric check: the output is {expected.dtype} {expected.shape}, and {got.dtype} {got.shape} fused",
                depth=9,
            )
        slack = tolerance(predictions, anchors, proof.parameters)
        with np.errstate(all="ignore"):
            wrong = ~((np.abs(expected.astype(np.float64) - got) <= slack) | (expected == got))
        if wrong.any():
            place = tuple(int(index[0]) for index in np.nonzero(wrong))
            raise Refusal(f"numeric check: element {place} is {expected[place]!r}, and {got[place]!r} fused", depth=9)


def tolerance(predictions: Array, anchors: Array, values: Parameters) -> NDArray[np.float64]:
    """Return how far two orders of the arithmetic may be apart: a few units in the last place of the largest term."""
    eps = np.finfo(predictions.dtype).eps
    rows = np.moveaxis(predictions.astype(np.float64), values.axis, -1)
    boxes = np.moveaxis(anchors.astype(np.float64), values.axis, -1)
    grouped = rows.reshape(*boxes.shape[:-1], -1, 4)
    scaled = grouped / np.array(values.scales) + np.array(values.means)
    size = np.abs(boxes[..., 2:] - boxes[..., :2])[..., None, :]
    growth = np.exp(np.clip(scaled[..., 2:], values.lower_bound, values.upper_bound))
    largest = np.abs(boxes).max(axis=-1)[..., None, None] + np.abs(scaled[..., :2]) * size + growth * size
    steps = 1 + np.abs(scaled).max(axis=-1, keepdims=True)
    slack = ULPS * eps * (largest * steps).max(axis=-1, keepdims=True)
    return np.moveaxis(np.broadcast_to(slack, grouped.shape).reshape(rows.shape), -1, values.axis)


def _other_sizes(proof: Proof) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield two pairs of shapes: dimensions that the proof left free get sizes of their own."""
    base_left, base_right = proof.shapes[0]
    for extra in (1, 4):
        left, right = list(base_left), list(base_right)
        for place in range(len(left)):
            used = {shape[place] for _, shape in proof.shapes}
            if len(used) > 1:
                left[place] = right[place] = (7 if len(left) < 3 else 3) + extra + place
                while left[place] in used:
                    left[place] = right[place] = left[place] + 1
        yield tuple(left), tuple(right)


def _boxes(random: np.random.Generator, shape: tuple[int, ...], proof: Proof) -> Array:
    axis = proof.parameters.axis
    values = np.moveaxis(random.uniform(-20, 200, shape), axis, -1)
    values[..., 2:] = values[..., :2] + random.uniform(0.5, 90, values[..., 2:].shape)
    return np.ascontiguousarray(np.moveaxis(values, -1, axis)).astype(proof.dtype)


def _predictions(random: np.random.Generator, shape: tuple[int, ...], proof: Proof) -> Array:
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


def _guarded(make: Callable[[], Runner]) -> Runner:
    """Turn whatever a runtime raises into a refusal: what cannot be run cannot be checked."""

    def run(left: Array, right: Array) -> Array:
        try:
            runner = made[0] if made else make()
            made[:] = [runner]
            return runner(left, right)
        except Exception as error:
            words = " ".join(str(error).split())
            raise Refusal(f"numeric check: the runtime cannot run it ({words[:200]})", depth=9) from error

    made: list[Runner] = []
    return run


def _runners(graph: Graph, proof: Proof) -> tuple[Callable[[], Runner], Callable[[], Runner]]:
    """Return what makes the runner of the subgraph, and of the fused node."""
    if graph.dialect == "onnx":
        before, after = _run_onnx.models(graph, proof)
        return partial(_run_onnx.runner, before, proof), partial(_run_onnx.runner, after, proof)
    if importlib.util.find_spec("tensorflow") is not None:
        before, after = _run_tf.graph_defs(graph, proof)
        return partial(_run_tf.runner, before, proof), partial(_run_tf.runner, after, proof)
    return partial(_numpy_runner, graph, proof), lambda: partial(formula, values=proof.parameters)


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
    grouped = rows.reshape(*boxes.shape[:-2], -1, 4) / np.array(values.scales, dtype) + np.array(values.means, dtype)
    size = boxes[..., 2:] - boxes[..., :2]
    centre = (boxes[..., 2:] + boxes[..., :2]) * dtype.type(0.5) + grouped[..., :2] * size
    growth = np.clip(grouped[..., 2:], dtype.type(values.lower_bound), dtype.type(values.upper_bound))
    half = np.exp(growth) * size * dtype.type(0.5)
    corners = np.concatenate([centre - half, centre + half], axis=-1)
    return np.moveaxis(corners.reshape(rows.shape), -1, values.axis)
