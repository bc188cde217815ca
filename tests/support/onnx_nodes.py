"""ONNX's own node tests: models of one node with inputs and outputs, which ship in the onnx package."""

import functools
import importlib
import pkgutil
import warnings
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.case import node


@functools.cache
def node_cases(operator: str) -> list[Any]:
    """The test cases of an operator of the default domain."""
    # onnx computes the cases of a module while it is imported. Those of all operators together take five seconds.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.iter_modules(node.__path__, f"{node.__name__}."):
            if module.name.rpartition(".")[2].replace("_", "") == operator.lower():
                importlib.import_module(module.name)
    return [
        case
        for case in node._NodeTestCases
        if case.model is not None and [one.op_type for one in case.model.graph.node] == [operator]
    ]


def attributes(case: Any) -> dict[str, Any]:
    """Attributes of the node, text as str."""
    found = {a.name: onnx.helper.get_attribute_value(a) for a in case.model.graph.node[0].attribute}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in found.items()}


def arrays(case: Any) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """Inputs and outputs of each run."""
    return [(list(inputs), list(outputs)) for inputs, outputs in case.data_sets]
