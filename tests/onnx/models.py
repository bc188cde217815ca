"""Models of one node, and the two engines that run them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator

import detops.onnx
from detops.onnx._table import NodeType

onnxruntime.set_default_logger_severity(4)  # errors are raised as well; the log would only repeat them


def model(
    operator: NodeType,
    inputs: Sequence[np.ndarray | None],
    attributes: Mapping[str, Any],
    *,
    named: bool = False,
    opset: int | None = None,
) -> onnx.ModelProto:
    """Return a model whose one node takes these inputs; `named` leaves all dimensions open."""
    names = [
        declared.name if array is not None else "" for declared, array in zip(operator.inputs, inputs, strict=False)
    ]
    values = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            [f"{name}_{axis}" if named else length for axis, length in enumerate(array.shape)],
        )
        for name, array in zip(names, inputs, strict=True)
        if array is not None
    ]
    first = inputs[0]
    assert first is not None
    outputs = [
        onnx.ValueInfoProto(
            name=name,
            type=onnx.TypeProto(
                tensor_type=onnx.TypeProto.Tensor(
                    elem_type=helper.np_dtype_to_tensor_dtype(first.dtype if dtype == "T" else np.dtype(dtype))
                )
            ),
        )
        for name, dtype in operator.outputs
    ]
    node = helper.make_node(
        operator.name, names, [output.name for output in outputs], domain=operator.domain, **attributes
    )
    opsets = {"": 17, operator.domain: opset or max(operator.versions)}
    return helper.make_model(
        helper.make_graph([node], "graph", values, outputs),
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in opsets.items()],
        ir_version=8,
    )


def feeds(operator: NodeType, inputs: Sequence[np.ndarray | None]) -> dict[str, np.ndarray]:
    """Return the inputs of such a model by name."""
    return {declared.name: array for declared, array in zip(operator.inputs, inputs, strict=False) if array is not None}


def run_reference(proto: onnx.ModelProto, given: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Run a model in ONNX's own evaluator."""
    return ReferenceEvaluator(proto, new_ops=detops.onnx.reference_ops()).run(None, dict(given))


def run_native(proto: onnx.ModelProto, given: Mapping[str, np.ndarray], **kwargs: Any) -> list[np.ndarray]:
    """Run a model in ONNX Runtime."""
    domains = ("", *detops.onnx._library.DOMAINS) if proto.graph.node[0].domain == "" else detops.onnx._library.DOMAINS
    return detops.onnx.session(proto, domains=domains, **kwargs).run(None, dict(given))
