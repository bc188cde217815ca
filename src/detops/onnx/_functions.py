"""Local functions of a model: what a call of one computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Key = tuple[str, str]


def local_functions(model: Any) -> dict[Key, Any]:
    """Return the functions that a model brings, by domain and name."""
    return {(function.domain, function.name): function for function in model.functions}


def called(function: Any, node: Any) -> Any:
    """Return the function as a node calls it: its attributes are the node's, or their defaults, or not there at all."""
    given = {each.name: each for each in function.attribute_proto} | {each.name: each for each in node.attribute}
    result = type(function)()
    result.CopyFrom(function)
    for inner in result.node:
        _bind(inner, given)
    return result


def bodies(node: Any) -> Iterator[Any]:
    """Yield the graphs that a node holds, such as the branches of an If."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _bind(node: Any, given: Mapping[str, Any]) -> None:
    """Replace each attribute that refers to one of the function by what that one holds."""
    for index in reversed(range(len(node.attribute))):
        attribute = node.attribute[index]
        if not attribute.ref_attr_name:
            continue
        value, name = given.get(attribute.ref_attr_name), attribute.name
        if value is None:
            del node.attribute[index]
        else:
            attribute.CopyFrom(value)
            attribute.name = name
    for body in bodies(node):
        for inner in body.node:
            _bind(inner, given)
