"""Shape inference: ONNX's own, told what the operators of detops give, which it doesn't know.

What the file states of inner tensors and outputs is not asked: it may be stale, or hold at one size only. The results
of operators that nobody knows are the exception: of those, the file is the only source.
"""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from detops.onnx._functions import Key, bodies, local_functions
from detops.onnx._schemas import result_types
from detops.onnx._table import NodeType, find

SMALL_TENSOR = 4096  # bytes; larger initializers are left out

MAX_LENGTH = 1 << 16  # ONNX's inference writes each element of a list down, since it might be one of sizes
MAX_EXPANDED = 1 << 18  # nodes of functions, which inference expands at each call

STANDARD = ("", "ai.onnx")  # the names of ONNX's own domain
UNKNOWN = "detops.unknown"  # a domain whose operators nobody knows

_WINDOW = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
_MICROSOFT = "com.microsoft"  # ONNX Runtime's own operators
# the inputs and the attributes that count for the shape, and the operator that has it
_FUSED = {
    "FusedConv": (2, _WINDOW, "Conv"),
    "FusedGemm": (3, ("transA", "transB"), "Gemm"),
    **dict.fromkeys(("BiasGelu", "BiasSoftmax", "FastGelu", "Gelu", "QuickGelu"), (1, (), "Identity")),
}
_PRODUCTS = ("FusedMatMul", "TransposeMatMul")

_BLOCKED = "com.microsoft.nchwc"  # operators on float images whose channels lie in blocks

Lookup = Callable[[Key], NodeType | None]


def inferred(model: Any) -> Any:
    """Return a copy of the main graph with the shapes that follow from its inputs, and with no others."""
    import onnx

    versions = {entry.domain: entry.version for entry in model.opset_import}
    functions = local_functions(model)

    @functools.cache
    def lookup(key: Key) -> NodeType | None:
        return None if known(key) else find(*key, versions.get(key[0], 1))

    def known(key: Key) -> bool:
        product = key[0] == _MICROSOFT and key[1] in _PRODUCTS
        return key[0] in STANDARD or key in functions or product

    light = _without_weights(model)
    holding = holders(light.graph)
    _clean(light.graph, holding)
    _drop_endless(light)
    if _MICROSOFT in versions:
        _as_standard(light.graph)
    _forget_claims(light.graph, holding, lambda key: known(key) or lookup(key) is not None)
    blind = _blind(light.graph, holding, frozenset())
    holding = holders(light.graph) if blind else holding
    broken = (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, ValueError, RuntimeError)
    with contextlib.suppress(*broken):
        hidden = _hide_long(light.graph, onnx.shape_inference.infer_shapes(light).graph, holding)
        holding, blind = holders(light.graph) if hidden else holding, blind or hidden
    if blind:
        light.opset_import.append(onnx.helper.make_opsetid(UNKNOWN, 1))
    with contextlib.suppress(*broken):  # the model may still be searched; unknown shapes make the proof harder
        while True:  # what is told of one operator may lead to the next one
            light = onnx.shape_inference.infer_shapes(light, data_prop=True)
            if not _tell(light.graph, holding, {}, {}, lookup):
                break
    return light.graph


def is_standard(node: Any) -> bool:
    """Tell whether a node is of ONNX's own domain."""
    return node.domain in STANDARD


def has_defaults(model: Any) -> bool:
    """Tell whether an initializer that is also an input is only a default, which can be replaced at run time."""
    return bool(model.ir_version >= 4)


def _inner(graph: Any, holding: Iterable[int]) -> Iterator[Any]:
    """Yield the graphs that the nodes at some indices hold."""
    for index in holding:
        yield from bodies(graph.node[index])


def holders(graph: Any) -> list[int]:
    """Return the indices of the nodes that hold graphs, so that a large graph is looked through once."""
    return [index for index, node in enumerate(graph.node) if node.attribute and any(True for _ in bodies(node))]


def _as_standard(graph: Any) -> None:
    """Take what ONNX Runtime's optimizer has fused for the operators that give the same shape."""
    for node in graph.node:
        if node.domain == _MICROSOFT and node.op_type in _FUSED and len(node.output) == 1:
            inputs, kept, node.op_type = _FUSED[node.op_type]
            node.domain = ""
            attributes = [attribute for attribute in node.attribute if attribute.name in kept]
            del node.attribute[:]
            node.attribute.extend(attributes)
            del node.input[inputs:]
        for body in bodies(node):
            _as_standard(body)


def entries_in(graph: Any) -> set[str]:
    """Return the names of a graph's inputs and initializers."""
    names = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    return names | {tensor.values.name for tensor in graph.sparse_initializer}


def _names_in(graph: Any) -> set[str]:
    """Return the names that a graph defines: of inputs, initializers and results."""
    return entries_in(graph) | {output for node in graph.node for output in node.output if output}


def _blind(graph: Any, holding: Sequence[int], outer: frozenset[str]) -> bool:
    """Forget the bodies that give a name of their surroundings another meaning, and tell whether there are any.

    ONNX forbids it, and runtimes differ in which one they take. What the node itself gives isn't seen from its bodies.
    """
    outer |= _names_in(graph) if holding else frozenset()
    found = False
    for node in [graph.node[index] for index in holding]:
        seen = outer - set(node.output)
        inner = list(bodies(node))
        for body in inner:
            found |= _blind(body, holders(body), seen)
        if any(not seen.isdisjoint(_names_in(body)) for body in inner):
            node.domain = UNKNOWN
            del node.attribute[:]
            found = True
    return found


def _drop_endless(light: Any) -> None:
    """Drop the functions that take too long to expand; where each calls the next one twice, they double every time."""
    functions = local_functions(light)
    if not functions:
        return
    sizes: dict[Key, int] = {}

    def size(wanted: Key) -> int:
        """Return how many nodes a call stands for, with those of the functions that it calls."""
        pending = [wanted]
        while pending:
            called = {inner for inner in _calls(functions[pending[-1]].node) if inner in functions}
            fresh = called.difference(sizes)
            if fresh:
                sizes[pending[-1]] = MAX_EXPANDED + 1  # of one that calls itself
                pending += fresh
                continue
            each = Counter(_calls(functions[pending[-1]].node))
            sizes[pending.pop()] = sum(count * (1 + sizes.get(inner, 0)) for inner, count in each.items())
        return sizes[wanted]

    calls = Counter(each for each in _calls(light.graph.node) if each in functions)
    left = MAX_EXPANDED
    kept = set()
    for cost, each in sorted((count * size(each), each) for each, count in calls.items()):
        left -= cost
        if left >= 0:
            kept.add(each)
    pending = list(kept)
    while pending:
        fresh = {inner for inner in _calls(functions[pending.pop()].node) if inner in functions} - kept
        kept |= fresh
        pending += fresh
    for index in reversed(range(len(light.functions))):
        if (light.functions[index].domain, light.functions[index].name) not in kept:
            del light.functions[index]


def _calls(nodes: Iterable[Any]) -> Iterator[Key]:
    """Yield the operator of each node, and of those in bodies."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        yield node.domain, node.op_type
        pending += [inner for body in bodies(node) for inner in body.node]


def _hide_long(graph: Any, typed: Any, holding: Sequence[int]) -> bool:
    """Forget what makes a list of more than `MAX_LENGTH`, but that it is a list; tell whether there is any."""
    long = {value.name: value.type for value in (*typed.value_info, *typed.output) if _is_long(value.type)}
    for value in (*graph.input, *graph.value_info):
        if _is_long(value.type):
            value.type.tensor_type.shape.dim[0].Clear()
    found = False
    for index in holding:
        node, twin = graph.node[index], typed.node[index]
        if long.keys().isdisjoint(node.output):
            for body, other in zip(bodies(node), bodies(twin), strict=True):
                found |= _hide_long(body, other, holders(body))
    return _hide(graph, typed, long) or found if long else found


def _hide(graph: Any, typed: Any, long: Mapping[str, Any]) -> bool:
    """Forget the nodes that make long lists, which are all of a type that is known; tell whether there are any."""
    import onnx

    known = {value.name: value.type for value in (*typed.value_info, *typed.output)}
    found = False
    for node in graph.node:
        if long.keys().isdisjoint(node.output):
            continue
        node.domain, found = UNKNOWN, True
        del node.attribute[:]
        for name in node.output:
            if name in known:
                value = graph.value_info.add()
                value.CopyFrom(onnx.helper.make_value_info(name, known[name]))
                if name in long:
                    value.type.tensor_type.shape.dim[0].Clear()
    return found


def _is_long(kind: Any) -> bool:
    dims = kind.tensor_type.shape.dim
    return len(dims) == 1 and bool(dims[0].dim_value > MAX_LENGTH)


def _without_weights(model: Any) -> Any:
    """Return a copy without the large weights (a whole model may pass protobuf's 2 GB)."""
    import onnx

    light = onnx.ModelProto(ir_version=max(model.ir_version, 4))
    light.opset_import.extend(model.opset_import)
    light.functions.extend(model.functions)
    graph = model.graph
    light.graph.name = graph.name
    light.graph.node.extend(graph.node)
    light.graph.input.extend(graph.input)
    light.graph.output.extend(graph.output)
    light.graph.value_info.extend(graph.value_info)
    stated = {value.name for value in graph.input}
    inputs = stated if has_defaults(model) else set()
    for tensor in graph.initializer:
        if tensor.name in inputs:
            continue  # a default, which says neither the value nor the shape that there will be
        if tensor.ByteSize() <= SMALL_TENSOR and tensor.data_location != onnx.TensorProto.EXTERNAL:
            light.graph.initializer.append(tensor)
        elif tensor.name not in stated:
            value = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            light.graph.input.append(value)
    return light


def _clean(graph: Any, holding: Iterable[int]) -> None:
    """Forget sizes below zero, which some exporters write for open ones, and which end inference without an error."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        for tensor in _tensor_types(value.type):
            for dim in tensor.shape.dim if tensor.HasField("shape") else ():
                if dim.dim_value < 0:
                    dim.Clear()
    for body in _inner(graph, holding):
        _clean(body, holders(body))


def _tensor_types(kind: Any) -> Iterator[Any]:
    """Yield the types of tensors in a type, such as that of a sequence's elements."""
    match kind.WhichOneof("value"):
        case "tensor_type" | "sparse_tensor_type" as name:
            yield getattr(kind, name)
        case "sequence_type" | "optional_type" as name:
            yield from _tensor_types(getattr(kind, name).elem_type)
        case "map_type":
            yield from _tensor_types(kind.map_type.value_type)


def _forget_claims(graph: Any, holding: Iterable[int], defined: Callable[[Key], bool]) -> None:
    """Drop what the file states of inner tensors and outputs that a defined operator makes, and of bodies' inputs."""
    import onnx

    claims = {value.name: value.type for value in (*graph.value_info, *graph.output) if value.HasField("type")}
    foreign = (node for node in graph.node if claims and not defined((node.domain, node.op_type)))
    names = {name for node in foreign for name in node.output}
    kept = [onnx.helper.make_value_info(name, claims[name]) for name in claims if name in names]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    for value in graph.output:
        value.ClearField("type")
    for body in _inner(graph, holding):
        for value in body.input:
            if value.type.HasField("tensor_type"):
                value.type.tensor_type.ClearField("shape")
        _forget_claims(body, holders(body), defined)
        inputs = {value.name for value in body.input}
        for index in reversed(range(len(body.initializer))):
            if body.initializer[index].name in inputs:
                del body.initializer[index]


def _tell(
    graph: Any, holding: Sequence[int], types: Mapping[str, Any], constants: Mapping[str, Any], lookup: Lookup
) -> bool:
    """Enter what inference doesn't know, given what surrounds the graph; tell whether there is any news."""
    import onnx

    silent = [node for node in graph.node if _is_silent(node.domain, node.op_type, lookup) and node.output]
    if not silent and not holding:
        return False
    constants = {**constants, **dict(_constants(graph))}
    types = {**types, **{value.name: value.type for value in (*graph.input, *graph.value_info)}}
    news = False
    for node in silent:
        given = [types.get(name) for name in node.input]
        for name, made in zip(node.output, _results(node, given, lookup), strict=False):
            if name and name not in types and made is not None and made.tensor_type.HasField("shape"):
                types[name] = made
                graph.value_info.append(onnx.helper.make_value_info(name, made))
                news = True
        if is_standard(node) and len(node.input) > 3 and node.input[3] in constants:
            axes = _integers(constants[node.input[3]])
            news |= axes is not None and _tell_uncut(given[0], types.get(node.output[0]), axes)
    for body in _inner(graph, holding):
        news |= _tell(body, holders(body), types, constants, lookup)
    return news


def _is_silent(domain: str, op: str, lookup: Lookup) -> bool:
    """Tell whether inference may know less of an operator than we do."""
    if domain in STANDARD:
        return op == "Slice"
    return domain == _BLOCKED or (domain == _MICROSOFT and op in _PRODUCTS) or lookup((domain, op)) is not None


def _results(node: Any, given: Sequence[Any], lookup: Lookup) -> Sequence[Any]:
    """Return the types of what an operator gives that inference doesn't know, None where it has none."""
    if node.domain == _BLOCKED:
        return [_blocked(node)]
    if node.domain == _MICROSOFT and node.op_type in _PRODUCTS:
        return [_product(node, given)]
    operator = lookup((node.domain, node.op_type))
    results = result_types(operator, given[:1] or [None], {}) if operator is not None else ()
    for made in results:
        for dim in made.tensor_type.shape.dim if made is not None else ():
            dim.Clear()  # the number of axes is what the proof needs
    return results


def _product(node: Any, given: Sequence[Any]) -> Any:
    """Return the type of a matrix product with transposed factors."""
    import onnx

    flags = {attribute.name: attribute.i for attribute in node.attribute}
    if flags.get("transBatchA") or flags.get("transBatchB") or None in given[:2] or len(given) < 2:
        return None
    if not all(kind.tensor_type.HasField("shape") and len(kind.tensor_type.shape.dim) > 1 for kind in given[:2]):
        return None
    left, right = (
        [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.tensor_type.shape.dim]
        for kind in given[:2]
    )
    batches = zip_longest(reversed(left[:-2]), reversed(right[:-2]), fillvalue=1)
    lead = [_broadcast(*pair) for pair in batches][::-1]
    rows, columns = left[-1 if flags.get("transA") else -2], right[-2 if flags.get("transB") else -1]
    return onnx.helper.make_tensor_type_proto(given[0].tensor_type.elem_type, [*lead, rows, columns])


def _broadcast(ours: int | None, theirs: int | None) -> int | None:
    """Return the length of an axis on which two tensors meet, None where it isn't known."""
    if 1 in (ours, theirs):
        return theirs if ours == 1 else ours
    return theirs if ours is None else ours


def _blocked(node: Any) -> Any:
    """Return the type of what an operator on blocks of channels gives: four axes, and the channels where it says so."""
    import onnx

    attributes = {attribute.name: attribute.i for attribute in node.attribute}
    plain = node.op_type == "ReorderOutput" and not attributes.get("channels_last")
    channels = attributes.get("channels") if plain else None
    return onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [None, channels, None, None])


def _constants(graph: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of a graph that no run changes, by name."""
    inputs = {value.name for value in graph.input}
    for tensor in graph.initializer:
        if tensor.name not in inputs:
            yield tensor.name, tensor
    for node in graph.node:
        if is_standard(node) and node.op_type == "Constant" and node.output:
            for attribute in node.attribute:
                if attribute.HasField("t") and not attribute.t.external_data:
                    yield node.output[0], attribute.t


def _integers(tensor: Any) -> list[int] | None:
    """Return the elements of a list of integers; None of anything else, or of what is torn."""
    import onnx

    if tensor.data_type not in (onnx.TensorProto.INT32, onnx.TensorProto.INT64):
        return None
    try:
        return [int(number) for number in onnx.numpy_helper.to_array(tensor).ravel()]
    except ValueError:
        return None


def _tell_uncut(source: Any, result: Any, axes: Sequence[int]) -> bool:
    """Enter the sizes of a Slice's result on the axes that it doesn't cut: with computed bounds, inference has none."""
    if source is None or result is None:
        return False
    before, after = (each.tensor_type.shape.dim for each in (source, result))
    news = False
    for index in range(len(before)):
        kept = len(after) == len(before) and index not in axes and index - len(before) not in axes
        if kept and before[index].HasField("dim_value") and not after[index].HasField("dim_value"):
            after[index].dim_value = before[index].dim_value
            news = True
    return news
