"""Broken and hostile files: a clear error or an answer, never a hang and never another kind of exception."""

import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from detops.graph import find_decode_bbox, fuse_decode_bbox
from detops.graph.model._tf_schema import messages

from .models import DATA, decode_model, operators


def graph_def(name: str = "pos_half") -> Any:
    return messages()["GraphDef"].FromString((DATA / f"{name}.pb").read_bytes())


def outcome_of(data: bytes) -> Any:
    """Return the findings, or the message of the ValueError; any other exception is a failure."""
    try:
        return fuse_decode_bbox(data)[1]
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("name", ["pos_half.onnx", "pos_half.pb", "exports/mm_plain.dyn.onnx"])
def test_truncated_file(name: str) -> None:
    data = (DATA / name).read_bytes()
    answers = 0
    for length in range(0, len(data), 7):
        outcome = outcome_of(data[:length])
        answers += isinstance(outcome, list)  # cut between two fields: a smaller graph, sound on its own
        assert isinstance(outcome, list) or outcome.startswith("model: ")
    assert answers < len(data) // 20


@pytest.mark.parametrize("seed", range(150))
def test_flipped_bytes(seed: int) -> None:
    random = np.random.default_rng(seed)
    name = ["pos_half.onnx", "pos_half.pb", "exports/mm_plain.dyn.onnx"][seed % 3]
    data = bytearray((DATA / name).read_bytes())
    for _ in range(random.integers(1, 6)):
        data[random.integers(len(data))] = random.integers(256)
    assert outcome_of(bytes(data)) is not None


@pytest.mark.parametrize("model", [b"", b"hello", "node { name: ", "{", b"\x00" * 100, b"\xff" * 100])
def test_what_is_no_model_is_a_value_error(model: Any) -> None:
    with pytest.raises(ValueError, match="model: "):
        find_decode_bbox(model)


def test_missing_file_is_a_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="model: cannot read"):
        find_decode_bbox(tmp_path / "nothing.onnx")
    with pytest.raises(ValueError, match="model: cannot read"):
        find_decode_bbox(tmp_path)


@pytest.mark.parametrize("model", [None, 3, np.zeros(3), {"graph": 1}])
def test_other_types_are_a_type_error(model: Any) -> None:
    with pytest.raises(TypeError, match="model: expected an ONNX model or a TensorFlow GraphDef"):
        find_decode_bbox(model)


def test_cycle_in_onnx() -> None:
    model = decode_model()
    next(node for node in model.graph.node if node.op_type == "Exp").input[0] = "joined"
    with pytest.raises(ValueError, match="model: the graph has a cycle through node"):
        find_decode_bbox(model)


def test_cycle_in_tensorflow() -> None:
    graph = graph_def()
    exponential = next(node for node in graph.node if node.op == "Exp")
    exponential.input[0] = "rpn/decode_bbox_target/concat"
    with pytest.raises(ValueError, match="model: the graph has a cycle through node"):
        find_decode_bbox(graph.SerializeToString())


def test_loop_of_tensorflow_is_no_error() -> None:
    graph = graph_def()
    for name, op, inputs in (("merge", "Merge", ["anchors", "next"]), ("next", "NextIteration", ["merge"])):
        graph.node.add(name=name, op=op).input.extend(inputs)
    assert [finding.fused for finding in find_decode_bbox(graph.SerializeToString())] == [True]


def test_missing_input() -> None:
    model = decode_model()
    model.graph.node[3].input[0] = "nowhere"
    with pytest.raises(ValueError, match="reads 'nowhere', which nothing makes"):
        find_decode_bbox(model)
    graph = graph_def()
    graph.node[-1].input[0] = "nowhere"
    with pytest.raises(ValueError, match="reads 'nowhere', which nothing makes"):
        find_decode_bbox(graph.SerializeToString())


def test_two_nodes_of_one_name() -> None:
    model = decode_model()
    model.graph.node.append(model.graph.node[0])
    with pytest.raises(ValueError, match="two nodes make the tensor"):
        find_decode_bbox(model)
    graph = graph_def()
    graph.node.append(graph.node[0])
    with pytest.raises(ValueError, match="two nodes are called"):
        find_decode_bbox(graph.SerializeToString())


@pytest.mark.parametrize("dims", [[1 << 29], [1 << 40, 1 << 40], [-1], [0, 1 << 62]])
def test_header_of_a_huge_tensor(dims: list[int]) -> None:
    """A tensor that says it has 2 GB (or more, or less than none) and carries nothing."""
    model = decode_model()
    for tensor in model.graph.initializer:
        if tensor.name == "clip":
            tensor.ClearField("raw_data")
            tensor.dims[:] = dims
    (finding,) = find_decode_bbox(model)
    assert not finding.fused
    graph = graph_def()
    constant = next(node for node in graph.node if node.name.endswith("Minimum/y"))
    tensor = constant.attr["value"].tensor
    tensor.ClearField("half_val")
    for size in dims:
        tensor.tensor_shape.dim.add(size=size)
    (finding,) = find_decode_bbox(graph.SerializeToString())
    assert not finding.fused


def test_length_of_two_gigabytes_without_the_bytes() -> None:
    head = b"\x08\x08\x3a" + b"\xff\xff\xff\xff\x07"  # field 7, the graph, of 2^31 - 1 bytes
    with pytest.raises(ValueError, match="cut short"):
        find_decode_bbox(head + b"\x0a\x00")


def test_huge_expansion_is_not_carried_out() -> None:
    for size in (1 << 20, 1 << 40):
        lines = {"size": "less = Sub(hi, lo)\nsize = Expand(less, huge)"}
        _, (finding,) = fuse_decode_bbox(decode_model(lines, {"huge": np.array([1, size, 1])}))
        assert not finding.fused
    lines = {"boxes": "many = Tile(b, times)\nboxes = Reshape(many, form)"}
    (finding,) = find_decode_bbox(decode_model(lines, {"times": np.array([1 << 40, 1])}))
    assert not finding.fused


def _chain(ops: list[str], count: int) -> onnx.ModelProto:
    """Return the decode after a chain of `count` nodes."""
    inner = decode_model()
    nodes = []
    for number in range(count):
        inputs = [f"c{number - 1}" if number else "before"]
        op = ops[number % len(ops)]
        nodes.append(
            helper.make_node(
                op,
                inputs * (2 if op in ("Mul", "Add", "Concat") else 1),
                [f"c{number}"],
                **({"axis": 0} if op == "Concat" else {}),
            )
        )
    nodes.append(helper.make_node("Identity", [f"c{count - 1}"], ["d"]))
    start = helper.make_tensor_value_info("before", TensorProto.FLOAT, ["N", 4])
    graph = helper.make_graph(
        [*nodes, *inner.graph.node], "long", [start, inner.graph.input[1]], inner.graph.output, inner.graph.initializer
    )
    return helper.make_model(graph, opset_imports=inner.opset_import, ir_version=8)


@pytest.mark.parametrize("ops", [["Relu"], ["Identity"], ["Exp", "Mul", "Add", "Relu"], ["Exp", "Mul", "Neg", "Add"]])
def test_graph_of_fifty_thousand_nodes(ops: list[str]) -> None:
    model = _chain(ops, 50_000)
    fused, findings = fuse_decode_bbox(model)
    assert [finding.fused for finding in findings if finding.decoded_boxes == "out"] == [True]
    assert operators(fused)[-1] == "DecodeBbox"


def test_many_decoys_side_by_side() -> None:
    """A hundred small graphs that look like decodes each get their answer."""
    inner = decode_model({"clip": "bounded = Max(s, clip)"})
    nodes, outputs = [], []
    for number in range(100):
        for node in inner.graph.node:
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            copy.output[:] = [f"{name}_{number}" for name in node.output]
            copy.input[:] = [
                name if name in ("d", "b", "form", "half", "clip") else f"{name}_{number}" for name in node.input
            ]
            nodes.append(copy)
        outputs.append(helper.make_tensor_value_info(f"out_{number}", TensorProto.FLOAT, None))
    graph = helper.make_graph(nodes, "many", inner.graph.input, outputs, inner.graph.initializer)
    findings = find_decode_bbox(helper.make_model(graph, opset_imports=inner.opset_import, ir_version=8))
    assert len(findings) == 100
    assert {finding.reason[:10] for finding in findings} == {"Maximum in"}


def test_malformed_attributes_are_refused() -> None:
    for change in ("no axis", "text for an axis", "axis far away"):
        model = decode_model()
        node = next(node for node in model.graph.node if node.op_type == "Split")
        attribute = node.attribute[0]
        if change == "no axis":
            del node.attribute[:]
        elif change == "text for an axis":
            attribute.CopyFrom(helper.make_attribute("axis", "one"))
        else:
            attribute.i = 77
        findings = find_decode_bbox(model)
        assert not any(finding.fused for finding in findings)


def test_float_bits_that_are_no_number() -> None:
    for bits in (0x7FC00000, 0x7F800000, 0xFF800000):
        clip = np.frombuffer(struct.pack("<I", bits), np.float32).reshape(())
        _, findings = fuse_decode_bbox(decode_model({}, {"clip": clip}))
        assert [finding.fused for finding in findings] == [bits == 0x7F800000]  # min(t, inf) is t


def test_importing_needs_no_onnx() -> None:
    code = "import sys, detops.graph, detops.cli.models, detops.cli.decodes; sys.exit('onnx' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], check=False, env=environment).returncode == 0
