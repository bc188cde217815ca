"""The proof's TensorFlow operators against TensorFlow itself, which must be installed.

`python -m tests.graph.tf_differential --cases 5000 --seed 1` runs many random nodes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from detops.graph._finding import CannotRunError, Refusal
from detops.graph.model._graph import Node
from detops.graph.model._tf_io import _attributes
from detops.graph.model._tf_schema import messages
from detops.graph.model._tf_tensors import number_of
from detops.graph.ops._ops import Run
from detops.graph.ops._ops_tf import TENSORFLOW

from . import differential
from .differential import Case, Random, _axes, _axis, _data, _shape

GENERATORS: dict[str, Callable[[Random], Case]] = {}


def _generator(make: Callable[[Random], Case]) -> Callable[[Random], Case]:
    GENERATORS[make.__name__.strip("_")] = make
    return make


def _ints(values: Any) -> Any:
    return np.array(values, np.int32)


@_generator
def _reshape(random: Random) -> Case:
    case = differential.GENERATORS["reshape"](random)
    return Case("Reshape", [case.inputs[0], case.inputs[1].astype(np.int32)])


@_generator
def _transpose(random: Random) -> Case:
    data = _data(random, _shape(random))
    return Case("Transpose", [data, _ints(random.permutation(data.ndim))])


@_generator
def _squeeze(random: Random) -> Case:
    data = _data(random, _shape(random))
    axes = _axes(random, data.ndim)
    if random.random() < 0.6:
        axes = [place - data.ndim * int(random.integers(2)) for place, dim in enumerate(data.shape) if dim == 1]
    return Case("Squeeze", [data], {"squeeze_dims": axes} if random.random() < 0.8 else {})


@_generator
def _expand_dims(random: Random) -> Case:
    data = _data(random, _shape(random))
    return Case("ExpandDims", [data, _ints(_axis(random, data.ndim + 1))])


@_generator
def _split(random: Random) -> Case:
    data = _data(random, _shape(random, least=1))
    parts = int(random.integers(1, 4))
    return Case("Split", [_ints(_axis(random, data.ndim)), data], {"num_split": parts}, outputs=parts, data=(1,))


@_generator
def _split_v(random: Random) -> Case:
    data = _data(random, _shape(random, least=1))
    axis = int(random.integers(-data.ndim, data.ndim))
    sizes = np.diff([0, *np.sort(random.integers(0, data.shape[axis] + 1, random.integers(0, 3))), data.shape[axis]])
    if random.random() < 0.5:
        sizes[random.integers(len(sizes))] = -1
    return Case("SplitV", [data, _ints(sizes), _ints(axis)], {"num_split": len(sizes)}, outputs=len(sizes))


@_generator
def _unpack(random: Random) -> Case:
    data = _data(random, _shape(random, least=1))
    axis = int(random.integers(-data.ndim, data.ndim))
    return Case("Unpack", [data], {"num": data.shape[axis], "axis": axis}, outputs=data.shape[axis])


@_generator
def _pack(random: Random) -> Case:
    shape = _shape(random, 3)
    pieces = [_data(random, shape, np.float32) for _ in range(random.integers(1, 4))]
    return Case("Pack", pieces, {"axis": _axis(random, len(shape) + 1), "N": len(pieces)}, data=range(len(pieces)))


@_generator
def _concat(random: Random) -> Case:
    case = differential.GENERATORS["concat"](random)
    axis = _ints(case.attributes["axis"])
    return Case("ConcatV2", [*case.inputs, axis], {"N": len(case.inputs)}, data=case.data)


@_generator
def _slice(random: Random) -> Case:
    data = _data(random, _shape(random, least=1))
    begin = [int(random.integers(0, dim + 1)) for dim in data.shape]
    size = [int(random.integers(-1, dim + 1)) for dim in data.shape]
    return Case("Slice", [data, _ints(begin), _ints(size)])


@_generator
def _strided_slice(random: Random) -> Case:
    data = _data(random, _shape(random, least=1))
    count = int(random.integers(1, data.ndim + 2))
    begin, end = (_ints(random.integers(-7, 8, count)) for _ in range(2))
    masks = {
        f"{name}_mask": int(random.integers(1 << count)) if random.random() < 0.4 else 0
        for name in ("begin", "end", "new_axis", "shrink_axis")
    }
    masks["ellipsis_mask"] = int(random.choice([0, 0, 1 << random.integers(count)]))
    stride = _ints(random.choice([1, 1, 1, 2, 3, -1, -2], count))
    return Case("StridedSlice", [data, begin, end, stride], masks)


@_generator
def _gather(random: Random) -> Case:
    data = _data(random, _shape(random, least=1))
    indices = _ints(random.integers(-1, 3, _shape(random, 2)))
    return Case("GatherV2", [data, np.maximum(indices, -(random.random() < 0.1)), _ints(_axis(random, data.ndim))])


@_generator
def _reverse(random: Random) -> Case:
    data = _data(random, _shape(random))
    return Case("ReverseV2", [data, _ints(_axes(random, data.ndim))])


@_generator
def _broadcast_to(random: Random) -> Case:
    case = differential.GENERATORS["expand"](random)
    return Case("BroadcastTo", [case.inputs[0], case.inputs[1].astype(np.int32)])


@_generator
def _tile(random: Random) -> Case:
    case = differential.GENERATORS["tile"](random)
    return Case("Tile", [case.inputs[0], case.inputs[1].astype(np.int32)])


@_generator
def _shape_of(random: Random) -> Case:
    return Case(str(random.choice(["Shape", "Size", "Rank"])), [_data(random, _shape(random))])


@_generator
def _fill(random: Random) -> Case:
    return Case("Fill", [_ints(_shape(random, 3)), _data(random, [], np.float32)], data=())


@_generator
def _reduce(random: Random) -> Case:
    data = _data(random, _shape(random, 2), np.int32)
    attributes = {"keep_dims": bool(random.integers(2))}
    return Case(str(random.choice(["Prod", "Sum", "Min", "Max"])), [data, _ints(_axes(random, data.ndim))], attributes)


@_generator
def _arithmetic(random: Random) -> Case:
    op = str(random.choice(["AddV2", "Add", "Sub", "Mul", "RealDiv", "Div", "FloorDiv", "Minimum", "Maximum"]))
    dtype = np.float32 if op == "RealDiv" else random.choice([np.float32, np.int32, np.int64])
    shape = _shape(random)
    other = [int(random.choice([dim, dim, 1, 2])) for dim in shape][random.integers(2) :]
    pair = [_data(random, shape, dtype), _data(random, other, dtype)]
    if op.endswith("Div"):
        pair[1] = (np.abs(pair[1]) * 2 + 1) * dtype(random.choice([1, -1]))
    return Case(op, pair, data=(0, 1) if op in ("AddV2", "Add", "Sub", "Mul") else (0,))


@_generator
def _clip(random: Random) -> Case:
    bounds = [np.float32(random.integers(-3, 4)) for _ in range(2)]
    return Case("ClipByValue", [_data(random, _shape(random), np.float32), *bounds])


@_generator
def _select(random: Random) -> Case:
    case = differential.GENERATORS["where"](random)
    return Case("SelectV2", case.inputs, data=())


@_generator
def _cast(random: Random) -> Case:
    case = differential.GENERATORS["cast"](random)
    kind = {1: 1, 6: 3, 7: 9, 9: 10, 11: 2}[case.attributes["to"]]
    return Case("Cast", case.inputs, {"DstT": kind}, data=())


@_generator
def _range(random: Random) -> Case:
    return Case("Range", [_ints(value) for value in random.integers(-4, 5, 3)], data=())


def _node(case: Case) -> Any:
    """Return the NodeDef of a case, with its types."""
    node = messages()["NodeDef"](name="n", op=case.op, input=[f"i{place}" for place in range(len(case.inputs))])
    types = [number_of(np.asarray(value).dtype) for value in case.inputs]
    at = {"Split": 1, "SelectV2": 1, "Fill": 1}.get(case.op, 0)
    name = {"Cast": "SrcT", "GatherV2": "Tparams", "Range": "Tidx"}.get(case.op, "T")
    node.attr[name].type = types[at]
    lists = {"Reshape": ("Tshape",), "Transpose": ("Tperm",), "ExpandDims": ("Tdim",), "SplitV": ("Tlen",)}
    lists |= {"ConcatV2": ("Tidx",), "Slice": ("Index",), "StridedSlice": ("Index",), "ReverseV2": ("Tidx",)}
    lists |= {"GatherV2": ("Tindices", "Taxis"), "BroadcastTo": ("Tidx",), "Tile": ("Tmultiples",)}
    lists |= {"Fill": ("index_type",)} | dict.fromkeys(("Prod", "Sum", "Min", "Max"), ("Tidx",))
    for attribute in lists.get(case.op, ()):
        node.attr[attribute].type = 3
    for key, value in case.attributes.items():
        if key == "DstT":
            node.attr[key].type = value
        elif isinstance(value, list):
            node.attr[key].list.i.extend(value)
            node.attr[key].list.SetInParent()
        elif isinstance(value, bool):
            node.attr[key].b = value
        else:
            node.attr[key].i = value
    return node


def run_tensorflow(case: Case) -> list[Any]:
    """Return what TensorFlow computes."""
    import tensorflow

    graph_def = messages()["GraphDef"]()
    for place, value in enumerate(case.inputs):
        node = graph_def.node.add(name=f"i{place}", op="Placeholder")
        node.attr["dtype"].type = number_of(np.asarray(value).dtype)
    graph_def.node.add().CopyFrom(_node(case))
    graph = tensorflow.Graph()
    with graph.as_default():
        tensorflow.import_graph_def(tensorflow.compat.v1.GraphDef.FromString(graph_def.SerializeToString()), name="")
    with tensorflow.compat.v1.Session(graph=graph) as session:
        feeds = {f"i{place}:0": value for place, value in enumerate(case.inputs)}
        return session.run([f"n:{place}" for place in range(case.outputs)], feeds)


def run_rule(case: Case, inputs: list[Any], run: Run | None = None) -> Any:
    """Return what the rule gives, or a text that begins with how it ended."""
    raw = _node(case)
    node = Node("n", case.op, tuple(raw.input), tuple(f"n:{at}" for at in range(case.outputs)), raw, _attributes)
    try:
        with np.errstate(all="ignore"):
            results = TENSORFLOW[case.op].apply(run or Run(), node, inputs)
        return list(results)[: case.outputs]
    except CannotRunError as error:
        return f"cannot: {error}"
    except (Refusal, ValueError, LookupError, ArithmeticError, TypeError) as error:
        return f"refused: {error}"


if __name__ == "__main__":
    sys.exit(differential.main(GENERATORS, run_tensorflow, run_rule))
