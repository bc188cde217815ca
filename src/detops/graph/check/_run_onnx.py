"""Runs a proved subgraph and its replacement in ONNX Runtime, or in ONNX's own evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops.graph.model._graph import Graph
from detops.graph.ops._evaluate import static_shape
from detops.graph.proof._prove import Proof
from detops.graph.rewrite import _rewrite_onnx

Array = NDArray[Any]


def models(graph: Graph, proof: Proof) -> tuple[Any, Any]:
    """Return the subgraph as a model of its own, and the same with the fused node, both in the proof's dtype."""
    import onnx

    node_version = proof.nodes[0].version
    kind = onnx.helper.np_dtype_to_tensor_dtype(proof.dtype)
    inputs = [onnx.helper.make_tensor_value_info(name, kind, None) for name in (proof.box_predictions, proof.anchors)]
    outputs = [onnx.helper.make_tensor_value_info(proof.decoded_boxes, kind, None)]
    made = {output for node in proof.nodes for output in node.outputs} | {
        proof.box_predictions,
        proof.anchors,
    }
    nodes, initializers = [], []
    for node in proof.nodes:
        missing = [name for name in node.inputs if name and name not in made and graph.constant(name) is None]
        if missing:  # the proof let only the static shape of some other tensor through
            value = static_shape(graph, node)
            initializers.append(onnx.numpy_helper.from_array(np.asarray(value), node.outputs[0]))
        else:
            nodes.append(node.raw)
    for name in dict.fromkeys(name for node in proof.nodes for name in node.inputs if name and name not in made):
        value = graph.constant(name)
        if value is not None:
            initializers.append(onnx.numpy_helper.from_array(value, name))
    opsets = [onnx.helper.make_opsetid("", node_version)]
    before = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "before", inputs, outputs, initializers),
        opset_imports=opsets,
        ir_version=8,
    )
    fused = _rewrite_onnx.make_node(proof, node_version, "fused")
    after = onnx.helper.make_model(
        onnx.helper.make_graph([fused], "after", inputs, outputs), opset_imports=opsets, ir_version=8
    )
    _rewrite_onnx.add_function(after, proof.parameters, node_version)
    return before, after


def in_double(model: Any) -> Any:
    """Return a model of a subgraph that computes in float64 what the given one computes in less."""
    import onnx

    double = onnx.TensorProto.DOUBLE
    less = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)

    def widen(tensor: Any) -> None:
        if tensor.data_type in less:
            name, value = tensor.name, onnx.numpy_helper.to_array(tensor).astype(np.float64)
            tensor.CopyFrom(onnx.numpy_helper.from_array(value, name))

    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for tensor in changed.graph.initializer:
        widen(tensor)
    for value in (*changed.graph.input, *changed.graph.output):
        value.type.tensor_type.elem_type = double
    for node in changed.graph.node:
        if node.op_type == "ConstantOfShape" and not node.attribute:
            node.attribute.append(onnx.helper.make_attribute("value", onnx.helper.make_tensor("", 1, [1], [0.0])))
        for attribute in node.attribute:
            if attribute.name in ("value_float", "value_floats"):
                values = attribute.f if attribute.name == "value_float" else list(attribute.floats)
                tensor = onnx.numpy_helper.from_array(np.array(values, np.float64))
                attribute.CopyFrom(onnx.helper.make_attribute("value", tensor))
            elif attribute.HasField("t"):
                widen(attribute.t)
            elif node.op_type == "Cast" and attribute.name == "to" and attribute.i in less:
                attribute.i = double
    return changed


def runner(model: Any, proof: Proof) -> tuple[Callable[[Array, Array], Array], str]:
    """Return a function of box_predictions and anchors that runs the model, and what runs it."""
    import onnx.reference

    run: Any
    try:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        run = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run
        name = "onnxruntime"
    except Exception:  # not installed, or a type or version that it doesn't run
        run, name = onnx.reference.ReferenceEvaluator(model).run, "onnx.reference"
    return lambda left, right: np.asarray(run(None, {proof.box_predictions: left, proof.anchors: right})[0]), name
