"""Every rule of the proof against the runtimes, on random nodes (`differential` and `tf_differential` run many)."""

import importlib.util
import os

import pytest

from detops.graph.ops import _ops_onnx, _ops_tf
from detops.graph.ops._ops import Definition

from . import differential, tf_differential

COUNT = int(os.environ.get("DETOPS_NODES", "1500"))
SEED = 20240607
# what no random node stands for: they pass values on, and need no arguments
PLAIN_ONNX = {"Sum", "Exp", "Neg", "Identity", "CastLike", "Sub"}
PLAIN_TF = {"AddN", "Exp", "Neg", "Identity", "StopGradient", "PreventGradient", "Snapshot", "Const", "HostConst"}
OLD_TF = {"Concat", "Gather", "ShapeN", "Equal"}


def test_rules_agree_with_onnxruntime() -> None:
    counts, wrong = differential.run_many(SEED, COUNT)
    assert not wrong, "\n".join(wrong[:10])
    assert counts["same for symbols"] > COUNT // 5, counts
    assert counts["refused"] < COUNT // 20, counts


@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed")
def test_rules_agree_with_tensorflow() -> None:
    how = tf_differential.GENERATORS, tf_differential.run_tensorflow, tf_differential.run_rule
    counts, wrong = differential.run_many(SEED, COUNT, *how)
    assert not wrong, "\n".join(wrong[:10])
    assert counts["same for symbols"] > COUNT // 5, counts


def _made(generators: object, seeds: int = 60) -> set[str]:
    import numpy as np

    return {
        make(np.random.default_rng([seed, place])).op
        for place, make in enumerate(generators.values())  # type: ignore[attr-defined]
        for seed in range(seeds)
    }


def test_every_rule_has_its_nodes() -> None:
    assert set(_ops_onnx.ONNX) == _made(differential.GENERATORS) | PLAIN_ONNX
    assert set(_ops_tf.TENSORFLOW) == _made(tf_differential.GENERATORS) | PLAIN_TF | OLD_TF


@pytest.mark.parametrize("op", ["Flatten", "Slice", "ReduceSum"])
def test_a_wrong_rule_would_be_seen(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was wrong once: Flatten with a negative axis, Slice backwards from before the axis, no axes to reduce."""
    import numpy as np

    from detops.graph.model._graph import Node
    from detops.graph.ops._ops import Run, Value

    right = _ops_onnx.ONNX[op]

    def wrong(run: Run, node: Node, values: list[Value]) -> list[Value]:
        value = values[0]
        if not isinstance(value, np.ndarray):
            return list(right.apply(run, node, values))
        if op == "Flatten":
            axis = node.attributes.get("axis", 1) % (value.ndim + 1)
            return [value.reshape(int(np.prod(value.shape[:axis])), -1)]
        if op == "Slice" and len(values) > 4:
            index: list[slice] = [slice(None)] * value.ndim
            for start, stop, axis, step in zip(*(each.tolist() for each in values[1:]), strict=True):
                index[axis] = slice(start, stop, step)
            return [value[tuple(index)]]
        if op == "ReduceSum" and len(values) > 1 and values[1] is not None and not values[1].size:
            return [value]
        return list(right.apply(run, node, values))

    monkeypatch.setitem(_ops_onnx.ONNX, op, Definition(right.kind, right.data, wrong))
    _, problems = differential.run_many(SEED, COUNT)
    assert problems
    assert all(problem.startswith(f"WRONG {op}") for problem in problems)
