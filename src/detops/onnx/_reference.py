"""Operators for ONNX's own ReferenceEvaluator, made from the table and run by the public functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

import detops
from detops.onnx._table import OPERATORS, Operator, attribute_arguments, find


def reference_ops() -> list[type[OpRun]]:
    """Return operators for ``onnx.reference.ReferenceEvaluator(model, new_ops=...)``.

    Returns
    -------
    list of type
        Subclasses of ``onnx.reference.op_run.OpRun``: RoiAlign, MaxRoiPool, ScatterND, NonMaxSuppression, DeformConv,
        GridSample and InstanceNormalization of the default domain, in all their versions, and every operator of
        the domains mmcv, mmdeploy and detops that :func:`supported_ops` lists.

    Raises
    ------
    ImportError
        If the package onnx is not installed.

    See Also
    --------
    session : Run the model in ONNX Runtime.

    Notes
    -----
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
    >>> evaluator.run(None, {"x": np.array([1, 3, 2], np.float32)})
    [array([1., 3., 3.], dtype=float32), array([0, 1, 1])]
    """
    names = dict.fromkeys((operator.domain, operator.name) for operator in OPERATORS)
    return [_op_run(domain, name) for domain, name in names]


def _op_run(domain: str, name: str) -> type[OpRun]:
    def _run(self: OpRun, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        operator = find(domain, name, self.run_params["opsets"].get(domain, 1))
        if operator is None:
            raise ValueError(f"{domain or 'ai.onnx'}::{name}: this opset version has no such operator")
        return run(operator, inputs, attributes)

    # The evaluator finds a class by the name of the operator. Without a schema it passes what the node holds.
    return type(name, (OpRun,), {"op_domain": domain, "op_schema": None, "_run": _run, "__doc__": f"{domain}::{name}"})


def run(operator: Operator, inputs: Sequence[Any], attributes: dict[str, Any]) -> tuple[Any, ...]:
    """Compute an operator of the table from a node's inputs (None for an absent one) and attributes."""
    try:
        arguments = {
            **operator.fixed,
            **attribute_arguments(operator, attributes),
            **_input_arguments(operator, inputs),
        }
        function = _FAMILIES.get(operator.family) or getattr(detops, operator.family)
        results = function(**arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{operator.title}: {error}") from error
    except IndexError as error:
        raise IndexError(f"{operator.title}: {error}") from error
    return tuple(results) if isinstance(results, tuple) else (results,)


def _input_arguments(operator: Operator, inputs: Sequence[Any]) -> dict[str, Any]:
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
        return getattr(detops, function)(**arguments)

    return call


# Families whose arguments differ from those of the public function of the same name.
_FAMILIES: dict[str, Callable[..., Any]] = {
    "roi_align": _roi_align,
    "cumulative": _cumulative,
    "deform_conv2d": _deform_conv2d,
    "decode_bbox": _decode_bbox,
    "non_max_suppression": _nms("non_max_suppression"),
    "non_max_suppression_padded": _nms("non_max_suppression_padded"),
}
