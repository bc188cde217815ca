"""ONNX's own node tests: models of one node with inputs and outputs, which ship in the onnx package."""

import functools
import warnings
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases


@functools.cache
def _all() -> tuple[Any, ...]:
    # A filter would hold for the first call only: onnx makes the cases while it imports their modules.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tuple(collect_testcases(None))


def node_cases(operator: str) -> list[Any]:
    """The test cases of an operator of the default domain."""
    return [
        case
        for case in _all()
        if case.model is not None and [node.op_type for node in case.model.graph.node] == [operator]
    ]


def attributes(case: Any) -> dict[str, Any]:
    """Attributes of the node, text as str."""
    found = {a.name: onnx.helper.get_attribute_value(a) for a in case.model.graph.node[0].attribute}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in found.items()}


def arrays(case: Any) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """Inputs and outputs of each run."""
    return [(list(inputs), list(outputs)) for inputs, outputs in case.data_sets]
