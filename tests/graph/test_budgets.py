"""Graphs that are made to take long: the answer must not need more than its budgets, nor end the process."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from detops.graph import find_decode_bbox
from detops.graph.search import _find
from detops.graph.symbols._expressions import Budget

from .models import DATA, decode_model
from .test_tensorflow import graph_def


def _twice(count: int, line: str) -> onnx.ModelProto:
    """Return a decode in which `line` makes v1 of v0, v2 of v1 and so on before the offset."""
    lines = [line.replace("NEXT", f"v{number + 1}").replace("LAST", f"v{number}") for number in range(count)]
    text = "\n".join(["v0 = Identity(t)", *lines, f"offset = Mul(v{count}, size)"])
    return decode_model({"offset": text}, {"nine": np.float32(9)})


def _squared_number(count: int) -> onnx.ModelProto:
    model = _twice(count, "NEXT = Mul(LAST, LAST)")
    model.graph.node[[node.output[0] for node in model.graph.node].index("v0")].CopyFrom(
        helper.make_node("Add", ["nothing", "nine"], ["v0"])
    )
    model.graph.node.insert(5, helper.make_node("Sub", ["t", "t"], ["nothing"]))
    model.graph.initializer.append(numpy_helper.from_array(np.float32(9), "nine"))
    return model


def _side_by_side(count: int) -> onnx.ModelProto:
    nodes = [helper.make_node("Exp", ["d"], [f"e{number}"]) for number in range(count)]
    nodes += [helper.make_node("Mul", [f"e{number}", "b"], [f"f{number}"]) for number in range(count)]
    nodes += [helper.make_node("Add", [f"f{number}", "b"], [f"g{number}"]) for number in range(count)]
    nodes.append(helper.make_node("Concat", [f"g{number}" for number in range(count)], ["out"], axis=-1))
    return _model(nodes)


def _all_into_one(count: int) -> onnx.ModelProto:
    nodes = [helper.make_node("Exp", ["d"], [f"e{number}"]) for number in range(count)]
    nodes.append(helper.make_node("Sum", [f"e{number}" for number in range(count)], ["s0"]))
    nodes += [helper.make_node("Mul", [f"s{number}", "b"], [f"s{number + 1}"]) for number in range(90)]
    nodes.append(helper.make_node("Add", ["s90", "b"], ["a"]))
    nodes.append(helper.make_node("Concat", ["a", "b"], ["out"], axis=-1))
    return _model(nodes)


def _model(nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4]) for name in ("d", "b")]
    output = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    return helper.make_model(
        helper.make_graph(nodes, "made", inputs, [output]), opset_imports=[helper.make_opsetid("", 17)]
    )


def _functions(depth: int) -> onnx.ModelProto:
    """Return a decode behind functions each of which calls the next one twice."""
    model = decode_model()
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    for number in range(depth):
        name = f"f{number + 1}"
        domain = "local" if number < depth - 1 else ""
        op = name if domain else "Identity"
        calls = [helper.make_node(op, [source], [result], domain=domain) for source, result in ("xy", "yz")]
        model.functions.append(helper.make_function("local", f"f{number}", ["x"], ["z"], calls, opsets))
    model.opset_import.append(opsets[1])
    model.graph.node.insert(0, helper.make_node("f0", ["d"], ["called"], domain="local"))
    model.graph.node[1].input[0] = "called"
    return model


def _long_list() -> onnx.ModelProto:
    """Return a decode beside a list of which ONNX's inference would write down each element."""
    model = decode_model()
    model.graph.node.insert(0, helper.make_node("Range", ["zero", "limit", "one"], ["listed"]))
    model.graph.node.insert(1, helper.make_node("Cast", ["listed"], ["unread"], to=TensorProto.FLOAT))
    for name, value in (("zero", 0), ("limit", 1 << 40), ("one", 1)):
        model.graph.initializer.append(numpy_helper.from_array(np.array(value), name))
    return model


def _pieces() -> bytes:
    graph = graph_def("pos_half")
    for node in graph.node:
        if node.op == "Split":
            node.attr["num_split"].i = 1 << 28
    return bytes(graph.SerializeToString())


def _sized(size: int, *, of: str = "input", axis: int = 0) -> onnx.ModelProto:
    model = decode_model()
    for value in getattr(model.graph, of)[:2]:
        value.type.tensor_type.shape.dim[axis].dim_value = size
    return model


def _axes_of_type(kind: int) -> onnx.ModelProto:
    """Return a decode beside a Slice whose axes are of no type that there is."""
    model = decode_model()
    model.graph.node.insert(0, helper.make_node("Slice", ["d", "start", "end", "axes"], ["unread"]))
    for name in ("start", "end", "axes"):
        model.graph.initializer.append(numpy_helper.from_array(np.array([1]), name))
    model.graph.initializer[-1].data_type = kind
    return model


def _number_too_large(name: str, kind: int) -> bytes:
    """Return a decode whose clip holds a number that its type doesn't hold."""
    graph = graph_def("pos_half")
    clip = next(node for node in graph.node if node.name.endswith("Minimum/y")).attr["value"].tensor
    clip.Clear()
    clip.dtype = kind
    getattr(clip, name).append(-(1 << 20))
    return bytes(graph.SerializeToString())


def _no_input() -> onnx.ModelProto:
    model = decode_model()
    next(node for node in model.graph.node if node.op_type == "Exp").ClearField("input")
    return model


def _scalars() -> onnx.ModelProto:
    model = decode_model()
    for value in model.graph.input:
        del value.type.tensor_type.shape.dim[:]
    return model


HOSTILE: dict[str, tuple[Callable[[], Any], list[bool]]] = {
    "a power of a power": (lambda: _twice(22, "NEXT = Mul(LAST, LAST)"), [False]),
    "a bound of a bound": (lambda: _twice(20, "m_NEXT = Min(LAST, nine)\nNEXT = Mul(m_NEXT, LAST)"), [False]),
    "a sum of sums": (lambda: _twice(40, "e_NEXT = Exp(LAST)\nNEXT = Add(e_NEXT, LAST)"), [False]),
    "nested exponentials": (lambda: _twice(300, "NEXT = Exp(LAST)"), []),
    "a number squared again and again": (lambda: _squared_number(40), [False]),
    "exponentials side by side": (lambda: _side_by_side(4000), []),
    "exponentials into one": (lambda: _all_into_one(3000), []),
    "functions that call the next one twice": (lambda: _functions(24), [False]),
    "a list of 2^40 elements": (_long_list, [True]),
    "pieces of 2^28": (_pieces, [False]),
    "rows below zero": (lambda: _sized(-1), [True]),
    "rows far below zero": (lambda: _sized(-(1 << 63)), [True]),
    "results below zero": (lambda: _sized(-1, of="output"), [True]),
    "more rows than there are": (lambda: _sized((1 << 63) - 1), [False]),
    "more boxes than can be tried": (lambda: _sized(1 << 40), [False]),
    "more columns than there are": (lambda: _sized(1 << 31, axis=1), [False]),
    "no rows": (lambda: _sized(0), [False]),
    "axes of no type": (lambda: _axes_of_type(0), [True]),
    "axes of an unknown type": (lambda: _axes_of_type(-(1 << 31)), [True]),
    "axes that are floats": (lambda: _axes_of_type(TensorProto.FLOAT), [True]),
    "bits that are no half": (lambda: _number_too_large("half_val", 19), [False]),
    "a number that is no byte": (lambda: _number_too_large("int_val", 4), [False]),
    "an exponential of nothing": (_no_input, []),
    "scalars": (_scalars, [False]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_graph_gets_an_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it may cost is counted in the budget, so that a slow machine changes nothing."""
    made: list[tuple[Budget, int]] = []

    class Counted(Budget):
        def __init__(self, elements: int) -> None:
            super().__init__(elements)
            made.append((self, elements))

    monkeypatch.setattr(_find, "Budget", Counted)
    make, fused = HOSTILE[name]
    assert [finding.fused for finding in find_decode_bbox(make())] == fused
    assert sum(elements - max(budget.left, 0) for budget, elements in made[:1]) <= 1 << 24


def test_a_few_functions_are_seen_through() -> None:
    """The limit is for what doubles, not for functions."""
    (finding,) = find_decode_bbox(_functions(3))
    assert finding.fused


def test_budget_that_is_used_up_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_find, "FIND_WORK", 100)
    (finding,) = find_decode_bbox(decode_model())
    assert (finding.fused, finding.nodes) == (False, ())
    assert "the proof would take too long" in finding.reason
    monkeypatch.undo()
    monkeypatch.setattr(_find, "GRAPH_WORK", 100)
    (finding,) = find_decode_bbox(DATA / "pos_half.pb")
    assert "the proof would take too long" in finding.reason


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("model", [decode_model().SerializeToString(), b"no model"], ids=["a model", "none"])
def test_the_collector_of_cycles_is_left_as_it_was(enabled: bool, model: bytes) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with suppress(ValueError):
            find_decode_bbox(model)
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
