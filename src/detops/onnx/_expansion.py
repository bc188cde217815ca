"""Nodes that are compositions, replaced by what they are made of."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from detops.onnx import _compositions
from detops.onnx._functions import bodies, local_functions
from detops.onnx._shapes import entries_in

# Operators have the forms that a composition writes from this operator set of ONNX on.
OLDEST = 11


def expand(model: Any) -> Any:
    """Return a model in which nodes that exporters write for TensorRT are made of ones that ONNX Runtime runs.

    :func:`session` does so by itself where ONNX Runtime refuses a model. Save the result for programs that open models
    with :func:`library_path` alone: nodes of the domains mmcv, mmdeploy and detops are among those that it holds.

    Parameters
    ----------
    model : onnx.ModelProto
        The model; it is not changed. Its operator set has to be 11 or later.

    Returns
    -------
    onnx.ModelProto
        A copy without ``mmdeploy::TRTBatchedNMS``, ``GatherTopk``, ``GridPriorsTRT``, ``MMCVMultiLevelRoiAlign``,
        ``ScaledDotProductAttentionTRT`` and ``TRTBicubicInterpolate``, ``mmcv::MMCVCornerPool``, and TensorRT's
        ``EfficientNMS_TRT``, ``BatchedNMS_TRT`` and ``BatchedNMSDynamic_TRT``, in bodies and functions of the model
        too. It has the same inputs and outputs.

    Raises
    ------
    ValueError
        If such a node has a wrong attribute or a wrong number of inputs, or the operator set is too old.
    ImportError
        If the package onnx is not installed.

    See Also
    --------
    session : A session with the library registered.

    Notes
    -----
    The tensors of these nodes are float32, as the exporters write them. ``TRTBatchedNMS`` reads no ``is_normalized``:
    MMDeploy's plugin gives it no effect either. ``EfficientNMS_TRT`` takes the 4096 best boxes of each class into
    account (of all, if it is ``class_agnostic``), TensorRT's plugin the 4096 best of all, and corners have to be in
    order.

    Examples
    --------
    >>> import onnx.parser
    >>> import detops.onnx
    >>> model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["": 13, "mmdeploy": 1]>
    ... agraph (float[B, N, 4] x, int64[B, K] inds) => (float[B, K, 4] y) { y = mmdeploy.GatherTopk (x, inds) }''')
    >>> [node.op_type for node in detops.onnx.expand(model).graph.node][-1]
    'Gather'
    """
    result = type(model)()
    result.CopyFrom(model)
    functions = local_functions(result)
    prefixes = _prefixes(result)
    for body in (result.graph, *result.functions):
        owner = result if body is result.graph else body
        _expand_in(body, owner, functions, prefixes)
    return result


def _expand_in(body: Any, owner: Any, functions: Any, prefixes: Iterator[str]) -> None:
    """Replace the nodes of a graph or function; `owner` has its operator sets."""
    replaced: list[Any] = []
    changed = False
    for node in body.node:
        for inner in bodies(node):
            _expand_in(inner, owner, functions, prefixes)
        made_of = None if (node.domain, node.op_type) in functions else _made_of(node, owner, prefixes)
        changed = changed or made_of is not None
        replaced += [node] if made_of is None else made_of
    if changed:
        copies = [type(node).FromString(node.SerializeToString()) for node in replaced]
        del body.node[:]
        body.node.extend(copies)
        _import(owner, {node.domain for node in copies})


def _made_of(node: Any, owner: Any, prefixes: Iterator[str]) -> list[Any] | None:
    import onnx

    composition = _compositions.find(node.domain, node.op_type)
    # What a function's node refers to is known only where it is called.
    if composition is None or any(each.ref_attr_name for each in node.attribute):
        return None
    version = next((each.version for each in owner.opset_import if each.domain in ("", "ai.onnx")), 1)
    if version < OLDEST:
        raise ValueError(f"{composition.title}: expected a model of operator set {OLDEST} or later, got {version}")
    given = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    return composition.nodes(next(prefixes), node.input, node.output, given)


def _import(owner: Any, domains: set[str]) -> None:
    known = {each.domain for each in owner.opset_import}
    for domain in sorted(domains - known - {"", "ai.onnx"}):
        owner.opset_import.add(domain=domain, version=1)


def _prefixes(model: Any) -> Iterator[str]:
    """Beginnings of names that no value of the model has."""
    names = set[str]().union(*map(_names, (model.graph, *model.functions)))
    start = "expanded"
    while any(name.startswith(start) for name in names):
        start += "_"
    return (f"{start}{number}/" for number in itertools.count())


def _names(body: Any) -> set[str]:
    """The names of all values in a graph or function, and in what it holds."""
    names = entries_in(body) if hasattr(body, "initializer") else set(body.input)
    for node in body.node:
        names.update(node.input, node.output, *map(_names, bodies(node)))
    return names
