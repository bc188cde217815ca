"""The operators' part of ``detops inspect``: which custom operators a model holds, and which of them detops runs.

ONNX Runtime itself is asked whether it opens a model. Only where it does not, or is not installed, nodes are judged one
by one.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from detops.onnx._compositions import find as composition
from detops.onnx._functions import Key, bodies, called, local_functions
from detops.onnx._table import Attribute, NodeType, attribute_arguments, find

if TYPE_CHECKING:
    from detops.cli.decodes import Section

# Domains that runtimes bring themselves; onnx has schemas of the first ones only.
BUILT_IN = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview", "ai.onnx.preview.training")
MICROSOFT = ("com.microsoft", "com.ms.")


@dataclass(frozen=True)
class Use:
    """A custom operator of a model.

    Attributes
    ----------
    domain, operator : str
        The operator's domain and name.
    count : int
        How many nodes there are; those of a local function count once for each call.
    runs : bool
        Whether detops runs it, or the model brings a function of that name.
    reason : str
        Why it does not run, or which part of detops runs it.
    """

    domain: str
    operator: str
    count: int
    runs: bool
    reason: str

    @property
    def title(self) -> str:
        """The operator as error messages name it."""
        return f"{self.domain or 'ai.onnx'}::{self.operator}"


@dataclass(frozen=True)
class Place:
    """A custom node with what surrounds it: the opset versions there, and what is known of types."""

    node: Any
    versions: Mapping[str, int]
    types: Sequence[Any]  # of its inputs
    results: Sequence[Any]  # of its results, as the model declares them
    is_call: bool = False  # of a function of the model

    @property
    def operator(self) -> NodeType | None:
        """The operator that the node stands for in a model of these opsets; None where detops has none."""
        return find(self.node.domain, self.node.op_type, self.versions.get(self.node.domain, 1))


def custom_operators(model: Any, opens: bool | None = None) -> list[Use]:
    """Return the custom operators of an ONNX model, in the order in which they are met.

    Parameters
    ----------
    model : onnx.ModelProto
        The model.
    opens : bool, optional
        Whether ONNX Runtime opens it, where that is known: all nodes run then.

    Returns
    -------
    list of Use
        One for each domain and operator, one more for nodes of it that cannot run.
    """
    counts: dict[tuple[str, str, bool, str], int] = {}
    for place in _places(model, judged=not opens):
        verdict = (True, _who(place)) if opens else _verdict(place)
        key = (place.node.domain, place.node.op_type, *verdict)
        counts[key] = counts.get(key, 0) + 1
    return [Use(domain, name, count, runs, reason) for (domain, name, runs, reason), count in counts.items()]


def refusal(model: Any) -> str:
    """Return why ONNX Runtime does not open a model (its path or bytes), in one line; an empty text where it does.

    Raises
    ------
    ImportError
        If onnxruntime is not installed or the compiled kernels are missing.
    """
    import onnxruntime

    from detops.onnx import session

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what goes wrong is raised as well
    options.intra_op_num_threads = 1
    try:
        session(model, sess_options=options)
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # ONNX Runtime's own kinds of exception
        return " ".join(str(error).split()) or type(error).__name__
    return ""


def _who(place: Place) -> str:
    if place.is_call:
        return "a function of the model"
    if place.operator is None:
        made_of = composition(place.node.domain, place.node.op_type)
        return "in ONNX Runtime" if made_of is None else "as nodes that detops.onnx.expand puts in its place"
    return "in the library for ONNX Runtime" if place.operator.native else "in the operators for the evaluator"


def _verdict(place: Place) -> tuple[bool, str]:
    """Return whether a node runs, and which part of detops runs it or the reason why none does."""
    if place.is_call:
        return True, _who(place)
    node = place.node
    declared = place.operator or composition(node.domain, node.op_type)
    if declared is None:
        return False, "detops has no such operator"
    try:
        why = _wrong_attribute(declared.attributes, node) or _refused(place)
    except ImportError:  # without ONNX Runtime, what the node holds is all that can be looked at
        why = ""
    return (False, f"node {node.name or ', '.join(node.output)}: {why}") if why else (True, _who(place))


def _wrong_attribute(declared: Iterable[Attribute], node: Any) -> str:
    import onnx

    try:
        given = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute if not each.ref_attr_name}
        attribute_arguments(declared, given)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def _refused(place: Place) -> str:
    """Why ONNX Runtime refuses a node by itself; an empty text where it doesn't, or too little is known to ask."""
    import onnx

    node = place.node
    types = {name: kind for name, kind in zip(node.input, place.types, strict=True) if name}
    if None in types.values():
        return ""
    graph = onnx.GraphProto(name="node", node=[node])
    for name, kind in types.items():
        graph.input.append(onnx.helper.make_value_info(name, kind))
    for name, kind in zip(node.output, place.results, strict=True):
        if name:
            result = graph.output.add(name=name)
            if kind is not None and kind.HasField("tensor_type"):
                result.type.tensor_type.elem_type = kind.tensor_type.elem_type
    opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in place.versions.items()]
    probe = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return refusal(probe.SerializeToString())


def _places(model: Any, judged: bool) -> Iterator[Place]:
    """Yield all custom nodes: of the graph, of the graphs inside nodes, and of functions as they are called.

    Only nodes that are to be judged need the types of their inputs.
    """
    return _places_in(model, judged, local_functions(model), frozenset())


def _places_in(model: Any, judged: bool, functions: Mapping[Key, Any], calls: frozenset[Key]) -> Iterator[Place]:
    from detops.onnx._shapes import inferred

    versions = {entry.domain: entry.version for entry in model.opset_import}
    pending: list[tuple[Any, Any, Mapping[str, Any]]] = [(model.graph, inferred(model) if judged else model.graph, {})]
    for graph, typed, outer in pending:
        declared = dict(_types(graph))
        types = {**outer, **declared, **dict(_types(typed))}
        for node, twin in zip(graph.node, typed.node, strict=True):
            kinds = [types.get(name) for name in node.input]
            key = (node.domain, node.op_type)
            is_call = key in functions and find(*key, versions.get(node.domain, 1)) is None
            if is_custom(node):
                yield Place(node, versions, kinds, [declared.get(name) for name in node.output], is_call)
            if is_call and key not in calls:
                inner = _as_model(called(functions[key], node), kinds, model if judged else None)
                yield from _places_in(inner, judged, functions, calls | {key})
            # Inference leaves bodies out that hide names of their surroundings.
            pairs = zip(bodies(node), list(bodies(twin)) or bodies(node), strict=True)
            pending += [(body, other, types) for body, other in pairs]


def _types(graph: Any) -> Iterator[tuple[str, Any]]:
    import onnx

    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.WhichOneof("value"):
            yield value.name, value.type
    for tensor in graph.initializer:
        yield tensor.name, onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))


def _as_model(function: Any, kinds: Sequence[Any], surroundings: Any) -> Any:
    """Return a model that computes what a call of a function does; `surroundings` is the model around it, if given."""
    import onnx

    graph = onnx.GraphProto(name=function.name, node=function.node)
    for name, kind in zip(function.input, kinds, strict=False):
        graph.input.append(onnx.ValueInfoProto(name=name, type=kind))
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in function.output)
    model = onnx.ModelProto(graph=graph, opset_import=function.opset_import)
    if surroundings is not None:
        model.ir_version = surroundings.ir_version
        model.functions.extend(surroundings.functions)
    return model


def is_custom(node: Any) -> bool:
    """Tell whether a node's operator is neither ONNX's nor, where it is installed, ONNX Runtime's own."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    if (domain, node.op_type) in _built_in():
        return False
    return _runtime_is_here() or not domain.startswith(MICROSOFT)  # of its own operators only the runtime can tell


@functools.cache
def _built_in() -> frozenset[Key]:
    """Return the operators that need no library."""
    import onnx

    schemas = onnx.defs.get_all_schemas_with_history()  # those that others have registered are among them
    known = {(schema.domain, schema.name) for schema in schemas if schema.domain in BUILT_IN}
    if _runtime_is_here():
        from onnxruntime.capi import onnxruntime_pybind11_state as state

        known |= {(schema.domain, schema.name) for schema in state.get_all_operator_schema()}
    return frozenset(known)


@functools.cache
def _runtime_is_here() -> bool:
    """Tell whether ONNX Runtime can be asked for its own operators."""
    try:
        from onnxruntime.capi import onnxruntime_pybind11_state as state
    except ImportError:
        return False
    return hasattr(state, "get_all_operator_schema")


def operators_section(path: str) -> Section | None:
    """Return the section on custom operators; None for a model that is not ONNX."""
    from detops.cli.decodes import Section
    from detops.graph.model._load import load

    loaded = load(path)
    if loaded.dialect != "onnx":
        return None
    why = _refusal_of_file(path)
    uses = custom_operators(loaded.proto, None if why is None else not why)
    data = [asdict(use) for use in uses]
    good = all(use.runs for use in uses) if why is None else not why
    return Section("custom_operators", data, lambda: _table(uses), good=good)


def runtime_section(path: str) -> Section | None:
    """Return the section on whether ONNX Runtime opens the model; None for a model that is not ONNX."""
    from rich.text import Text

    from detops.cli.decodes import Section
    from detops.graph.model._load import load

    if load(path).dialect != "onnx":
        return None
    why = _refusal_of_file(path)
    if why is None:
        return Section("onnxruntime", {"opens": None, "reason": "onnxruntime is not installed"}, lambda: Text(""))
    text = f"ONNX Runtime does not open it: {why}" if why else "ONNX Runtime opens it with the library of detops."
    return Section("onnxruntime", {"opens": not why, "reason": why}, lambda: Text(text), good=not why)


def _refusal_of_file(path: str) -> str | None:
    """Why ONNX Runtime does not open the model in a file; None where it cannot be asked."""
    try:
        return _asked(path, os.path.getmtime(path))
    except ImportError:
        return None


@functools.lru_cache(maxsize=1)
def _asked(path: str, changed: float) -> str:
    return refusal(path)


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
        table.add_row(use.title, str(use.count), answer, use.reason)
    return table
