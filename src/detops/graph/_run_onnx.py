"""Runs a proved subgraph and its replacement in ONNX Runtime, or in ONNX's own evaluator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops.graph import _rewrite_onnx
from detops.graph._evaluate import static_shape
from detops.graph._prove import Proof
from detops.graph._view import Graph

Array = NDArray[Any]


def models(graph: Graph, proof: Proof) -> tuple[Any, Any]:
    """Return the subgraph as a model of its own, and the same with the fused node."""
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


def runner(model: Any, proof: Proof) -> Callable[[Array, Array], Array]:
    import onnx.reference

    run: Any
    try:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        run = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run
    except Exception:  # not installed, or a type or version that it doesn't run
        run = onnx.reference.ReferenceEvaluator(model).run
    return lambda left, right: np.asarray(run(None, {proof.box_predictions: left, proof.anchors: right})[0])
