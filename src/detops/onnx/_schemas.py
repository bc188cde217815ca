"""The operators as schemas of the package onnx, and the types and shapes of their results."""

from __future__ import annotations

import atexit
import contextlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from detops.onnx._table import OPERATORS, REQUIRED, NodeType, attribute_arguments

# Attributes that nodes have and that the kernels don't read.
_UNREAD = {
    "MMCVDeformConv2d": {"bias": "int"},
    "MMCVMultiScaleDeformableAttention": {"im2col_step": "int"},
    # What a fused model's own function reads where operator sets are old; the kernels need only the numbers themselves.
    "DecodeBbox": {"constants": "tensor"},
    "DecodeBboxV2": {"constants": "tensor"},
}

_TYPES = {"float32": "float", "float64": "double"}  # where ONNX's name is another one than NumPy's

_registered: set[tuple[str, int, str]] = set()  # name, version and domain of what this process has added

Dims = list[Any]  # TensorShapeProto.Dimension, or None for an open one


def register_schemas() -> None:
    """Make the operators of the domains mmcv, mmdeploy and detops known to the package onnx, in this process.

    ``onnx.shape_inference`` and ``onnx.checker`` know them then, and so do tools that ask onnx for types, such as
    ``onnxruntime.quantization.quantize_dynamic`` and the converters to float16. Calling it again changes nothing.

    Raises
    ------
    ImportError
        If the package onnx is not installed, or older than 1.19.

    See Also
    --------
    supported_ops : The operators, their inputs, attributes and types.

    Examples
    --------
    >>> import onnx.parser
    >>> import detops.onnx
    >>> detops.onnx.register_schemas()
    >>> model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["": 17, "mmcv": 1]>
    ... agraph (float[N] x) => (float[N] y) { y, i = mmcv.cummax <dim = 0> (x) }''')
    >>> onnx.shape_inference.infer_shapes(model).graph.value_info[0].type.tensor_type.elem_type  # of i: int64
    7
    """
    from onnx import defs

    # It collects all schemas when it is imported, and takes each name in one domain only: ours come after that.
    importlib.import_module("onnx.reference")
    if not hasattr(defs.OpSchema, "set_type_and_shape_inference_function"):
        raise ImportError("schemas with shapes need the package onnx in version 1.19 or later")
    # Some versions of onnx end in a crash when schemas outlive the interpreter that their functions need.
    atexit.register(deregister_schemas)
    for operator in OPERATORS:
        version = min(operator.versions)
        if operator.domain and not defs.has(operator.name, version, operator.domain):
            defs.register_schema(_schema(operator, version))
            _registered.add((operator.name, version, operator.domain))


def deregister_schemas() -> None:
    """Take back what ``register_schemas`` has added."""
    from onnx import defs

    while _registered:
        with contextlib.suppress(defs.SchemaError):  # somebody else has done it
            defs.deregister_schema(*_registered.pop())


def _schema(operator: NodeType, version: int) -> Any:
    from onnx import defs

    option = defs.OpSchema.FormalParameterOption
    elements = sorted(_tensor(dtype) for dtype in operator.dtypes)
    inputs, constraints = [], []
    kinds: dict[str, str] = {}
    for number, declared in enumerate(operator.inputs):
        # Inputs may differ in their types.
        kind = kinds[declared.like] if declared.like else _tensor(declared.dtype)
        if declared.dtype == "T" and not declared.like:
            kind = "T" if number == 0 else f"T{number}"
            constraints.append((kind, elements, f"Types of {declared.name}."))
        kinds[declared.argument] = kind
        needed = option.Single if declared.required else option.Optional
        inputs.append(defs.OpSchema.FormalParameter(declared.name, kind, param_option=needed))
    outputs = [
        defs.OpSchema.FormalParameter(
            name,
            "T" if dtype == "T" else _tensor(dtype),
            param_option=option.Single if number == 0 else option.Optional,
        )
        for number, (name, dtype) in enumerate(operator.outputs)
    ]
    schema = defs.OpSchema(
        operator.name,
        operator.domain,
        version,
        f"{operator.title}, as detops runs it.",
        inputs=inputs,
        outputs=outputs,
        type_constraints=constraints,
        attributes=_attributes(operator),
    )
    schema.set_type_and_shape_inference_function(_inference(operator))
    return schema


def _tensor(dtype: str) -> str:
    return f"tensor({_TYPES.get(dtype, dtype)})"


def _attributes(operator: NodeType) -> list[Any]:
    from onnx import defs

    kinds = {"int": "INT", "float": "FLOAT", "string": "STRING", "ints": "INTS", "floats": "FLOATS", "tensor": "TENSOR"}
    declared: list[tuple[str, str, bool]] = [
        (name, each.kind, each.default is REQUIRED and not each.spellings)
        for each in operator.attributes
        for name in each.names
    ]
    declared += [(name, kind, False) for name, kind in _UNREAD.get(operator.name, {}).items()]
    return [
        defs.OpSchema.Attribute(name, getattr(defs.OpSchema.AttrType, kinds[kind]), required=required)
        for name, kind, required in declared
    ]


def _inference(operator: NodeType) -> Callable[[Any], None]:
    def infer(context: Any) -> None:
        import onnx

        types = [context.get_input_type(number) for number in range(context.get_num_inputs())]
        names = [name for each in operator.attributes for name in each.names]
        found = {name: context.get_attribute(name) for name in names}
        attributes = {name: onnx.helper.get_attribute_value(each) for name, each in found.items() if each is not None}
        for number, made in enumerate(result_types(operator, types, attributes)[: context.get_num_outputs()]):
            if made is not None:
                context.set_output_type(number, made)

    return infer


def result_types(operator: NodeType, types: Sequence[Any], attributes: Mapping[str, Any]) -> list[Any]:
    """Return the types of a node's results from those of its inputs and its attributes; None where nothing is known.

    A dimension is given where every run that does not fail has it.
    """
    import onnx

    first: Any = types[0] if types else None
    known = first is not None and first.HasField("tensor_type") and first.tensor_type.elem_type
    dims = _dims(operator, types, attributes)
    results: list[Any] = []
    for (_, dtype), rank in zip(operator.outputs, operator.ranks, strict=True):
        if dtype == "T" and not known:
            results.append(None)
            continue
        element = first.tensor_type.elem_type if dtype == "T" else _element(dtype)
        # What is known of the dimensions is that of the first, or of all.
        own = dims if rank is None or rank == operator.ranks[0] else [None] * rank
        result = onnx.helper.make_tensor_type_proto(element, None if own is None else [None] * len(own))
        for made, dim in zip(result.tensor_type.shape.dim, own or (), strict=True):
            if isinstance(dim, int):
                made.dim_value = dim
            elif dim is not None:
                made.CopyFrom(dim)
        results.append(result)
    return results


def _element(dtype: str) -> int:
    import onnx

    return int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def _dims(operator: NodeType, types: Sequence[Any], attributes: Mapping[str, Any]) -> Dims | None:
    """Return the dimensions of the results; None where not even their number is known."""
    inputs = {
        declared.argument: _dims_of(kind)
        for declared, kind in zip(operator.inputs, types, strict=False)
        if kind is not None
    }
    make = _FAMILIES.get(operator.family)
    if make is not None:
        try:
            arguments = attribute_arguments(operator.attributes, dict(attributes))
        except (TypeError, ValueError):
            arguments = {}  # of what is wrong with a node, those speak that run it
        return make(inputs, arguments)
    first = inputs.get(operator.inputs[0].argument)
    rank = operator.ranks[0]
    return first if rank is None else [None] * rank


def _dims_of(kind: Any) -> Dims | None:
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    return list(kind.tensor_type.shape.dim)


def _at(dims: Dims | None, axis: int) -> Any:
    return dims[axis] if dims is not None and axis < len(dims) else None


def _roi_align(inputs: Mapping[str, Dims | None], arguments: Mapping[str, Any]) -> Dims:
    size = [arguments.get("output_height"), arguments.get("output_width")]
    return [_at(inputs.get("rois"), 0), _at(inputs.get("features"), 1), *size]


def _deform_conv2d(inputs: Mapping[str, Dims | None], arguments: Mapping[str, Any]) -> Dims:
    offset = inputs.get("offset")
    return [_at(inputs.get("x"), 0), _at(inputs.get("weight"), 0), _at(offset, 2), _at(offset, 3)]


def _grid_sample(inputs: Mapping[str, Dims | None], arguments: Mapping[str, Any]) -> Dims | None:
    x, grid = inputs.get("x"), inputs.get("grid")
    if x is None and grid is None:
        return None
    rank = len(x if x is not None else grid or ())
    return [_at(x, 0), _at(x, 1), *(_at(grid, axis) for axis in range(1, rank - 1))]


def _multi_scale_deform_attn(inputs: Mapping[str, Dims | None], arguments: Mapping[str, Any]) -> Dims:
    value = inputs.get("value")
    heads, channels = _at(value, 2), _at(value, 3)
    known = all(dim is not None and dim.HasField("dim_value") for dim in (heads, channels))
    width = heads.dim_value * channels.dim_value if known else None
    return [_at(value, 0), _at(inputs.get("attention_weights"), 1), width]


def _soft_nms(inputs: Mapping[str, Dims | None], arguments: Mapping[str, Any]) -> Dims:
    return [None, 5]


def _padded(inputs: Mapping[str, Dims | None], arguments: Mapping[str, Any]) -> Dims:
    return [None, 3]


_FAMILIES: dict[str, Callable[[Mapping[str, Dims | None], Mapping[str, Any]], Dims | None]] = {
    "roi_align": _roi_align,
    "deform_conv2d": _deform_conv2d,
    "grid_sample": _grid_sample,
    "multi_scale_deform_attn": _multi_scale_deform_attn,
    "non_max_suppression_padded": _padded,
    "soft_nms": _soft_nms,
}
