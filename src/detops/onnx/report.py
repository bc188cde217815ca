"""The operators' part of ``detops inspect``: which custom operators a model holds, and which of them detops runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from detops.onnx._table import attribute_arguments, find

if TYPE_CHECKING:
    from detops.graph.report import Section

# Domains that runtimes bring themselves.
BUILT_IN = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "com.microsoft")


@dataclass(frozen=True)
class Use:
    """A custom operator of a model.

    Attributes
    ----------
    domain, operator : str
        What its nodes say.
    count : int
        How many nodes there are.
    runs : bool
        Whether detops runs it, or the model brings a function of that name.
    reason : str
        Why not, or who does.
    """

    domain: str
    operator: str
    count: int
    runs: bool
    reason: str


def custom_operators(model: Any) -> list[Use]:
    """Return the custom operators of an ONNX model, in the order in which they are met.

    Parameters
    ----------
    model : onnx.ModelProto
        The model.

    Returns
    -------
    list of Use
        One for each domain and operator, one more for nodes of it that cannot run.
    """
    versions = {entry.domain: entry.version for entry in model.opset_import}
    functions = {(function.domain, function.name) for function in model.functions}
    counts: dict[tuple[str, str, bool, str], int] = {}
    for node in _nodes(model):
        if node.domain not in BUILT_IN:
            verdict = _verdict(node, versions.get(node.domain, 1), (node.domain, node.op_type) in functions)
            key = (node.domain, node.op_type, *verdict)
            counts[key] = counts.get(key, 0) + 1
    return [Use(domain, name, count, runs, reason) for (domain, name, runs, reason), count in counts.items()]


def _verdict(node: Any, version: int, has_function: bool) -> tuple[bool, str]:
    import onnx

    operator = find(node.domain, node.op_type, version)
    if operator is None:
        return (True, "a function of the model") if has_function else (False, "detops has no such operator")
    attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute if not each.ref_attr_name}
    try:
        attribute_arguments(operator, attributes)
    except (TypeError, ValueError) as error:
        return False, f"node {node.name or next(iter(node.output), node.op_type)}: {error}"
    return True, "in the library for ONNX Runtime" if operator.native else "in the operators for the evaluator"


def _nodes(model: Any) -> Iterator[Any]:
    """All nodes: of the graph, of functions, and of the graphs inside nodes."""
    pending = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    for node in pending:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                pending += graph.node


def operators_section(path: str) -> Section | None:
    """Return the section on custom operators; None for a model that is not ONNX."""
    from detops.graph._load import load
    from detops.graph.report import Section

    loaded = load(path)
    if loaded.dialect != "onnx":
        return None
    uses = custom_operators(loaded.proto)
    data = [asdict(use) for use in uses]
    return Section("custom_operators", data, lambda: _table(uses), good=all(use.runs for use in uses))


def _table(uses: list[Use]) -> Any:
    from rich.table import Table
    from rich.text import Text

    if not uses:
        return Text("Custom operators: none found.")
    table = Table(title="Custom operators", title_justify="left")
    table.add_column("operator", overflow="fold", no_wrap=True)
    for name in ("nodes", "detops runs it", "by what, or why not"):
        table.add_column(name, overflow="fold")
    for use in uses:
        answer = Text("yes", style="green") if use.runs else Text("no", style="red")
        table.add_row(f"{use.domain}::{use.operator}", str(use.count), answer, use.reason)
    return table
