"""Writes DecodeBbox nodes into a GraphDef, each backed by a FunctionDef of the same name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from detops.graph._finding import Refusal
from detops.graph.model._graph import Graph
from detops.graph.model._tf_schema import messages
from detops.graph.model._tf_tensors import number_of, set_tensor
from detops.graph.proof._prove import SWAPPED, Proof
from detops.graph.rewrite._function_tf import INT32, function_for, general_function, make_node
from detops.graph.rewrite._rewrite import Plan

if TYPE_CHECKING:
    from detops.graph.model._load import Loaded


def apply(graph_def: Any, plans: Sequence[Plan]) -> None:
    """Carry the plans out on `graph_def`, which they were made from."""
    for plan in plans:
        for position, proof in plan.proofs.items():
            index = plan.graph.nodes[position].index
            node = _new_node(plan, proof, graph_def.node[index])
            graph_def.node[index].CopyFrom(_surrounded(graph_def, plan.graph, proof, node))
            if proof.made is not None:
                _add_constant(graph_def, proof.made.name, proof.made.anchors)
        for index in sorted((plan.graph.nodes[position].index for position in plan.dead), reverse=True):
            del graph_def.node[index]
    proofs = [proof for plan in plans for proof in plan.proofs.values()]
    for operator in dict.fromkeys(proof.parameters.operator for proof in proofs):
        add_function(graph_def, [proof for proof in proofs if proof.parameters.operator == operator])


def _surrounded(graph_def: Any, graph: Graph, proof: Proof, node: Any) -> Any:
    """Let a node read and write boxes where the graph has other axes; return the node that makes the output."""
    for index, name in enumerate((proof.box_predictions, proof.anchors)):
        if name in proof.rows:
            rows = graph.free_name(proof.decoded_boxes, f"_rows_{index}")
            graph_def.node.add().CopyFrom(_reshape(graph_def, name, rows, [-1, 4], proof))
            node.input[index] = rows.removesuffix(":0")
    if proof.corners_added is not None:
        node.input[1] = _add(graph_def, graph, proof, node.input[1], proof.corners_added)
    if proof.alike:
        node.input[1] = _as_many(graph_def, graph, proof, node)
    if not proof.tail and not proof.swapped:
        return node
    rows = graph.free_name(proof.decoded_boxes, "_rows" if proof.tail else "_swapped")
    made = graph_def.node.add()
    made.CopyFrom(node)
    made.name = rows.removesuffix(":0")
    if proof.tail:
        last = _reshape(graph_def, rows, proof.decoded_boxes, [-1, *proof.tail], proof)
    else:
        last = _swap(graph_def, rows, proof)
    last.device = node.device
    if "_output_shapes" in node.attr:
        last.attr["_output_shapes"].CopyFrom(node.attr["_output_shapes"])
        del made.attr["_output_shapes"]
    return last


def _as_many(graph_def: Any, graph: Graph, proof: Proof, node: Any) -> str:
    """Pass anchors on through a Reshape that fails where they aren't as many as the predictions."""
    result = graph.free_name(proof.decoded_boxes, "_as_many").removesuffix(":0")
    for name, value in (("zero", [0]), ("one", [1]), ("four", [4]), ("axis", 0)):
        _add_constant(graph_def, f"{result}_{name}", np.array(value, np.int32))
    listed = (
        ("shape", "Shape", [node.input[0]], {"T": number_of(proof.dtype), "out_type": INT32}),
        ("count", "StridedSlice", ["shape", "zero", "one", "one"], {"T": INT32, "Index": INT32}),
        ("form", "ConcatV2", ["count", "four", "axis"], {"T": INT32, "Tidx": INT32}),
        ("", "Reshape", [node.input[1], "form"], {"T": number_of(proof.dtype), "Tshape": INT32}),
    )
    for name, op, inputs, types in listed:
        made = graph_def.node.add(name=f"{result}_{name}" if name else result, op=op)
        made.input.extend(each if each in node.input else f"{result}_{each}" for each in inputs)
        for key, kind in types.items():
            made.attr[key].type = kind
        if op == "ConcatV2":
            made.attr["N"].i = 2
    return result


def _reshape(graph_def: Any, source: str, result: str, shape: Sequence[int], proof: Proof) -> Any:
    form = f"{result.removesuffix(':0')}_form"
    _add_constant(graph_def, form, np.array(shape, np.int32))
    node = messages()["NodeDef"](name=result.removesuffix(":0"), op="Reshape", input=[source.removesuffix(":0"), form])
    node.attr["T"].type = number_of(proof.dtype)
    node.attr["Tshape"].type = INT32
    return node


def _add(graph_def: Any, graph: Graph, proof: Proof, source: str, numbers: np.ndarray[Any, Any]) -> str:
    """Add numbers to the corners of anchors; return what makes the sum."""
    result = graph.free_name(proof.decoded_boxes, "_counted").removesuffix(":0")
    _add_constant(graph_def, f"{result}_numbers", numbers)
    node = graph_def.node.add(name=result, op="Add", input=[source, f"{result}_numbers"])
    node.attr["T"].type = number_of(proof.dtype)
    return result


def _swap(graph_def: Any, source: str, proof: Proof) -> Any:
    name, result = source.removesuffix(":0"), proof.decoded_boxes.removesuffix(":0")
    for constant, value in (("order", SWAPPED), ("axis", proof.parameters.axis)):
        _add_constant(graph_def, f"{name}_{constant}", np.array(value, np.int32))
    node = messages()["NodeDef"](name=result, op="GatherV2", input=[name, f"{name}_order", f"{name}_axis"])
    for key, kind in (("Tparams", number_of(proof.dtype)), ("Tindices", INT32), ("Taxis", INT32)):
        node.attr[key].type = kind
    return node


def _add_constant(graph_def: Any, tensor: str, value: np.ndarray[Any, Any]) -> None:
    node = graph_def.node.add(name=tensor.partition(":")[0], op="Const")
    node.attr["dtype"].type = number_of(value.dtype)
    set_tensor(node.attr["value"].tensor, value)


def check_room(loaded: Loaded, proof: Proof, accepted: Sequence[Proof]) -> None:
    """Refuse where the graph cannot hold the node's function: it has one of each name, for one layout and type."""
    operator = proof.parameters.operator
    alike = [*(other for other in accepted if other.parameters.operator == operator), proof]
    general = general_function(proof)
    fits = all(general_function(other) == general for other in alike)
    present = _present(loaded.proto, operator)
    if not fits or present not in (None, general, function_for(alike)):
        raise Refusal(f"the GraphDef has another function {operator} already (or one for another type)", depth=8)
    if loaded.saved and any(other.parameters != proof.parameters for other in alike):
        raise Refusal(f"the SavedModel has another function {operator} already, with other numbers in it", depth=8)


def add_function(graph_def: Any, proofs: Sequence[Proof]) -> None:
    """Give the graph the function that the new nodes of some proofs with one operator call."""
    function = function_for(proofs)
    if _present(graph_def, function.signature.name) is None:
        graph_def.library.function.append(function)


def _present(graph_def: Any, operator: str) -> Any:
    return next((function for function in graph_def.library.function if function.signature.name == operator), None)


def _new_node(plan: Plan, proof: Proof, old: Any) -> Any:
    node = make_node(proof, old.name)
    node.device = old.device
    if "_output_shapes" in old.attr:
        node.attr["_output_shapes"].CopyFrom(old.attr["_output_shapes"])
    gone = {plan.graph.nodes[position].name for position in plan.dead} | {node.name}
    waits = [name for member in proof.nodes for name in member.control if name not in gone]
    node.input.extend(f"^{name}" for name in dict.fromkeys(waits))
    return node
