"""Operators for ONNX's own ReferenceEvaluator, made from the table and run by the public functions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops import load_op

import detops
from detops.onnx._compositions import COMPOSITIONS, Composition
from detops.onnx._functions import called, local_functions
from detops.onnx._table import OPERATORS, NodeType, attribute_arguments, find


def reference_ops() -> list[type[OpRun]]:
    """Return operators for ``onnx.reference.ReferenceEvaluator(model, new_ops=...)``.

    Returns
    -------
    list of type
        Subclasses of ``onnx.reference.op_run.OpRun``: RoiAlign, MaxRoiPool, ScatterND, NonMaxSuppression, DeformConv,
        GridSample and InstanceNormalization of the default domain, in all their versions, and every operator of
        the domains mmcv, mmdeploy and detops that :func:`supported_ops` lists; and the nodes that :func:`expand` takes.

    Raises
    ------
    ImportError
        If the package onnx is not installed.

    See Also
    --------
    session : Run the model in ONNX Runtime.

    Notes
    -----
    ONNX's own implementation stays in charge of what the operators of the default domain don't take: other element
    types (bfloat16, text beside "none", integers), maps of other ranks, an epsilon of 0.

    The evaluator does not hand these operators on to the local functions of a model; for that,
    ``onnx.inliner.inline_local_functions`` puts the functions where they are called.

    A node that cannot be run (an attribute that is missing or has a wrong value, a wrong shape) ends in a ValueError
    that names the operator and the attribute or argument.

    Examples
    --------
    >>> import numpy as np
    >>> import onnx.parser
    >>> from onnx.reference import ReferenceEvaluator
    >>> import detops.onnx
    >>> model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["": 17, "mmcv": 1]>
    ... agraph (float[N] x) => (float[N] y, int64[N] i) { y, i = mmcv.cummax <dim = 0> (x) }''')
    >>> evaluator = ReferenceEvaluator(model, new_ops=detops.onnx.reference_ops())
    >>> values, indices = evaluator.run(None, {"x": np.array([1, 3, 2], np.float32)})
    >>> values.tolist(), indices.tolist()
    ([1.0, 3.0, 3.0], [0, 1, 1])
    """
    return list(_classes())


@functools.cache
def _classes() -> tuple[type[OpRun], ...]:
    names = dict.fromkeys((operator.domain, operator.name) for operator in OPERATORS)
    return (*(_op_run(domain, name) for domain, name in names), *map(_composed, COMPOSITIONS))


def _composed(composition: Composition) -> type[OpRun]:
    """An operator that runs what it is made of."""

    def _run(self: OpRun, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        names = [f"input{i}" if value is not None else "" for i, value in enumerate(inputs)]
        results = [f"output{i}" for i in range(len(self.output))]
        nodes = composition.nodes("", names, results, attributes)
        values = [onnx.ValueInfoProto(name=name) for name in names]
        graph = onnx.helper.make_graph(nodes, "body", values, [onnx.ValueInfoProto(name=name) for name in results])
        domains = {node.domain for node in nodes} - {""}
        opsets = [onnx.helper.make_opsetid("", 17), *(onnx.helper.make_opsetid(domain, 1) for domain in domains)]
        body = ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=opsets), new_ops=list(_classes()))
        return tuple(body.run(None, dict(zip(names, inputs, strict=True))))

    members = {"op_domain": composition.domain, "op_schema": None, "__doc__": composition.title}
    return type(composition.name, (OpRun,), members | {"_run": _run})


def _op_run(domain: str, name: str) -> type[OpRun]:
    def _run(self: OpRun, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        version = self.run_params["opsets"].get(domain, 1)
        operator = find(domain, name, version)
        if domain == "" and (operator is None or not _applies(operator, inputs, attributes)):
            own = _own(self, name, version)
            if own is not None:
                linked = {"linked_attributes": _linked(own, attributes)} if own.has_linked_attribute else {}
                results: tuple[Any, ...] = own.run(*inputs, **linked)
                return results
        if operator is None:
            raise ValueError(f"{domain or 'ai.onnx'}::{name}: this opset version has no such operator")
        return run(operator, inputs, attributes)

    def _check_and_fix_outputs(self: OpRun, results: tuple[Any, ...]) -> tuple[Any, ...]:
        # A result without a name is one that the node does not have: the evaluator would take it for an input that is
        # absent elsewhere, which has no name either.
        named = OpRun._check_and_fix_outputs(self, results)
        return tuple(result if name else None for result, name in zip(named, self.output, strict=False))

    # The evaluator finds a class by the name of the operator. Without a schema it passes what the node holds.
    members = {"op_domain": domain, "op_schema": None, "__doc__": f"{domain}::{name}"}
    methods = {"_run": _run, "_check_and_fix_outputs": _check_and_fix_outputs}
    return type(name, (OpRun,), members | methods)


def _own(node: OpRun, name: str, version: int) -> OpRun | None:
    """ONNX's own implementation of a node; None where it has none."""
    try:
        own: OpRun = load_op("", name, version)(node.onnx_node, node.run_params)
    except (NotImplementedError, RuntimeError, ValueError):  # what it raises differs between the versions of onnx
        return None
    return own


def _linked(own: OpRun, attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of the surrounding function that a node refers to."""
    return {each.ref_attr_name: attributes[each.name] for each in own.onnx_node.attribute if each.ref_attr_name}


def _applies(operator: NodeType, inputs: Sequence[Any], attributes: dict[str, Any]) -> bool:
    """Whether the public function takes a node of the default domain. Of what is wrong with it that one speaks."""
    for declared, value in zip(operator.inputs, inputs, strict=False):
        if declared.dtype == "T" and value is not None and _kind(value) not in operator.dtypes:
            return False
    ranks = _RANKS.get(operator.family)
    if ranks is not None and np.ndim(inputs[0]) not in ranks:
        return False
    if operator.family == "scatter_nd" and _kind(inputs[0]) == "string":
        return attributes.get("reduction", "none") == "none"
    return operator.family != "instance_norm" or attributes.get("epsilon", 1) > 0


def _kind(value: Any) -> str:
    dtype = np.asarray(value).dtype
    return "string" if dtype.kind in "OUT" else dtype.name


class _Evaluator(ReferenceEvaluator):
    """ONNX's evaluator with the operators of detops, in bodies and in the local functions of a model too.

    ONNX's own hands no operators on to local functions, and knows neither the defaults of their attributes nor calls
    that leave the last inputs away. This one runs a function as it is called.
    """

    local: Mapping[tuple[str, str], Any] = MappingProxyType({})

    def __init__(self, proto: Any, opsets: Any = None, functions: Any = None, verbose: int = 0, **_: Any) -> None:
        super().__init__(proto, opsets=opsets, verbose=verbose, new_ops=reference_ops())

    def _load_impl(self, node: Any, input_types: Any = None) -> Any:
        function = self.local.get((node.domain, node.op_type))
        if function is None or (node.domain, node.op_type) in self.new_ops_:
            return super()._load_impl(node, input_types)
        return _call_of(type(self)(called(function, node)))


def _call_of(function: ReferenceEvaluator) -> type[OpRun]:
    def _run(self: OpRun, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        names = function.input_names
        given = (*inputs, *[None] * (len(names) - len(inputs)))
        return tuple(function.run(None, dict(zip(names, given, strict=True)), attributes={}))

    return type("Call", (OpRun,), {"op_schema": None, "_run": _run})


def evaluator(model: str | onnx.ModelProto) -> ReferenceEvaluator:
    """Return an evaluator of a model, or of that in a file, with whatever its local functions hold."""
    proto = onnx.load(model) if isinstance(model, str) else model
    functions = local_functions(proto)
    without = onnx.ModelProto()
    without.CopyFrom(proto)
    del without.functions[:]
    return type("Evaluator", (_Evaluator,), {"local": functions})(without)


def run(operator: NodeType, inputs: Sequence[Any], attributes: dict[str, Any]) -> tuple[Any, ...]:
    """Compute an operator of the table from a node's inputs (None for an absent one) and attributes."""
    try:
        arguments = {
            **operator.fixed,
            **attribute_arguments(operator.attributes, attributes),
            **_input_arguments(operator, inputs),
        }
        function = _FAMILIES.get(operator.family) or getattr(detops, operator.family)
        results = function(**arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{operator.title}: {error}") from error
    except IndexError as error:
        raise IndexError(f"{operator.title}: {error}") from error
    return tuple(results) if isinstance(results, tuple) else (results,)


def _input_arguments(operator: NodeType, inputs: Sequence[Any]) -> dict[str, Any]:
    if len(inputs) > len(operator.inputs):
        raise ValueError(f"expected at most {len(operator.inputs)} inputs, got {len(inputs)}")
    arguments = {}
    padded = (*inputs, *[None] * (len(operator.inputs) - len(inputs)))
    for declared, value in zip(operator.inputs, padded, strict=True):
        if value is not None:
            arguments[declared.argument] = value
        elif declared.required:
            raise ValueError(f"input {declared.name}: expected a tensor, got none")
    return arguments


def _roi_align(output_height: int, output_width: int, **arguments: Any) -> Any:
    return detops.roi_align(output_size=(output_height, output_width), **arguments)


def _cumulative(x: Any, axis: int, smallest: bool) -> Any:
    return (detops.cummin if smallest else detops.cummax)(x, axis)


def _deform_conv2d(x: Any, offset: Any, weight: Any, kernel_shape: Sequence[int] = (), **arguments: Any) -> Any:
    if kernel_shape and tuple(kernel_shape) != weight.shape[2:]:
        raise ValueError(f"kernel_shape: expected that of the weight, {weight.shape[2:]}, got {tuple(kernel_shape)}")
    return detops.deform_conv2d(x, offset, weight, **arguments)


def _decode_bbox(decode_clip: float, lower_clip: float = -math.inf, **arguments: Any) -> Any:
    # Infinity on its own side is no bound.
    if decode_clip != math.inf:
        arguments["decode_clip"] = decode_clip
    if lower_clip != -math.inf:
        arguments["lower_clip"] = lower_clip
    return detops.decode_bbox(**arguments)


def _nms(function: str) -> Callable[..., Any]:
    def call(**arguments: Any) -> Any:
        # Numbers may come as tensors of one element.
        numbers = {name: np.asarray(value) for name, value in arguments.items() if name not in ("boxes", "scores")}
        for name, value in numbers.items():
            if value.size != 1:
                raise ValueError(f"{name}: expected one number, got shape {value.shape}")
            arguments[name] = value.item()
        # As for the other limit, 0 stands for none.
        top_k = {"pre_nms_top_k": arguments.pop("pre_nms_top_k", 0) or None}
        return getattr(detops, function)(**arguments, **top_k)

    return call


# The axes that the maps of a family have; ONNX leaves their number open.
_RANKS = {"grid_sample": (4, 5)}

# Families whose arguments differ from those of the public function of the same name.
_FAMILIES: dict[str, Callable[..., Any]] = {
    "roi_align": _roi_align,
    "cumulative": _cumulative,
    "deform_conv2d": _deform_conv2d,
    "decode_bbox": _decode_bbox,
    "non_max_suppression": _nms("non_max_suppression"),
    "non_max_suppression_padded": _nms("non_max_suppression_padded"),
}
