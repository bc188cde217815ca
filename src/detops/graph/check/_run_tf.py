"""Runs a proved subgraph and its replacement in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops.graph.model._graph import Graph
from detops.graph.model._tf_schema import messages
from detops.graph.model._tf_tensors import number_of, set_tensor
from detops.graph.ops._evaluate import static_shape
from detops.graph.proof._prove import Proof
from detops.graph.rewrite._function_tf import make_node
from detops.graph.rewrite._rewrite_tf import add_function

Array = NDArray[Any]


def graph_defs(graph: Graph, proof: Proof) -> tuple[Any, Any]:
    """Return the subgraph as a GraphDef of its own, and the same with the fused node."""
    before, after = messages()["GraphDef"](), messages()["GraphDef"]()
    given = {proof.box_predictions: "detops_predictions", proof.anchors: "detops_boxes"}
    for graph_def in (before, after):
        for name in given.values():
            node = graph_def.node.add(name=name, op="Placeholder")
            node.attr["dtype"].type = number_of(proof.dtype)
    made = {output for node in proof.nodes for output in node.outputs} | set(given)
    constants: dict[str, Any] = {}
    for member in proof.nodes:
        if any(name not in made and graph.constant(name) is None for name in member.inputs):
            constants[member.name] = static_shape(graph, member)
            continue
        node = before.node.add()
        node.CopyFrom(member.raw)
        node.device = ""
        del node.input[:]
        node.input.extend(given.get(name, name) for name in member.inputs)
        for name in member.inputs:
            if name not in made:
                constants[name.partition(":")[0]] = graph.constant(name)
    for name, value in constants.items():
        node = before.node.add(name=name, op="Const")
        node.attr["dtype"].type = number_of(value.dtype)
        set_tensor(node.attr["value"].tensor, value)
    fused = after.node.add()
    fused.CopyFrom(make_node(proof, proof.decoded_boxes.partition(":")[0]))
    del fused.input[:]
    fused.input.extend(given.values())
    add_function(after, [proof])
    return before, after


def runner(graph_def: Any, proof: Proof) -> tuple[Callable[[Array, Array], Array], str]:
    """Return a function of box_predictions and anchors that runs the graph, and what runs it."""
    import tensorflow

    theirs = tensorflow.compat.v1.GraphDef.FromString(graph_def.SerializeToString())
    graph = tensorflow.Graph()
    with graph.as_default():
        tensorflow.import_graph_def(theirs, name="")
    session = tensorflow.compat.v1.Session(graph=graph)

    def run(left: Array, right: Array) -> Array:
        feeds = {"detops_predictions:0": left, "detops_boxes:0": right}
        return np.asarray(session.run(proof.decoded_boxes, feeds))

    return run, "tensorflow"
