"""The custom nodes that MMCV 1.2.7 to 1.7.2 and MMDeploy 0.1.0 to 1.3.1 can write, as their sources write them.

``exported_nodes.json`` holds for each node its domain, operator, inputs and attributes (by name the type or kind, and
an example), the types of its results, and who writes it. Nodes whose attributes have no kind in the exporter's source
(such as MMCVCARAFE before MMCV 1.3.12) are not there: torch refuses to write them.
"""

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_suffix(".json")
OPSET = 11


def rows() -> list[dict[str, Any]]:
    """Return the nodes."""
    found: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def title(row: dict[str, Any]) -> str:
    """Return how a node is told from all others."""
    return f"{row['domain'] or 'ai.onnx'}::{row['operator']}, {row['written_by']}"


def model(row: dict[str, Any]) -> Any:
    """Return a model that holds the node, as the exporter writes it."""
    import onnx
    from onnx import helper

    element = {"float32": 1, "int32": 6, "int64": 7}
    make = {"int": int, "float": float, "string": str, "ints": list, "floats": list}
    outputs = [f"result_{place}" for place in range(len(row["outputs"]))]
    node = helper.make_node(row["operator"], list(row["inputs"]), outputs, domain=row["domain"])
    for name, (kind, value) in row["attributes"].items():
        node.attribute.append(helper.make_attribute(name, make[kind](value)))
    inputs = [
        helper.make_tensor_value_info(name, element[dtype], shape) for name, (dtype, shape) in row["inputs"].items()
    ]
    results = []
    for name, dtype in zip(outputs, row["outputs"], strict=True):
        tensor = onnx.TypeProto.Tensor(elem_type=element[dtype])
        results.append(onnx.ValueInfoProto(name=name, type=onnx.TypeProto(tensor_type=tensor)))
    graph = helper.make_graph([node], "graph", inputs, results)
    opsets = [helper.make_opsetid(domain, OPSET) for domain in dict.fromkeys(("", row["domain"]))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=6)


def runs(row: dict[str, Any]) -> bool:
    """Whether ONNX Runtime opens such a model with the library of detops."""
    from detops.cli.operators import refusal

    return not refusal(model(row).SerializeToString())


def table() -> str:
    """Return the table of all nodes, those that run first."""
    lines = ["| domain | operator | inputs | attributes | written by | runs |", "| --- " * 6 + "|"]
    for answer, row in sorted(((runs(row), row) for row in rows()), key=lambda pair: not pair[0]):
        inputs = ", ".join(row["inputs"])
        attributes = ", ".join(f"{name} ({kind})" for name, (kind, _) in row["attributes"].items())
        domain, verdict = row["domain"] or '`""`', "yes" if answer else "no"
        cells = (domain, row["operator"], inputs, attributes, row["written_by"], verdict)
        lines.append(f"| {' | '.join(cells)} |")
    return "".join(f"{line}\n" for line in lines)
