"""The format of TensorFlow's GraphDef as data, to compare detops' own schema with.

`python -m tests.graph.graph_def_format` writes tests/data/graph_def_format.json from the messages that TensorBoard
carries (Apache-2.0); the package tensorboard must be installed.
"""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

STORED = Path(__file__).parents[1] / "data" / "graph_def_format.json"


def described(message: Any) -> dict[str, dict[str, Any]]:
    """Return the fields of a message's descriptor and of all that it can hold, and the numbers of their constants."""
    found: dict[str, dict[str, Any]] = {}
    left = [message]
    while left:
        holder = left.pop()
        if holder.name in found:
            continue
        fields = {field.name: _type_of(field) for field in holder.fields}
        found[holder.name] = dict(sorted(fields.items()))
        for field in holder.fields:
            kinds = field.message_type.fields if _is_map(field) else (field,)
            left += [kind.message_type for kind in kinds if kind.message_type is not None]
            enums = [kind.enum_type for kind in kinds if kind.enum_type is not None]
            found.update({enum.name: {value.name: value.number for value in enum.values} for enum in enums})
    return dict(sorted(found.items()))


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _type_of(field: Any) -> str:
    """Return number, kind and type of a field, as a .proto file would name them."""
    if _is_map(field):
        key, value = map(_scalar, field.message_type.fields)
        return f"{field.number} map<{key}, {value}>"
    return f"{field.number} {_kind_of(field)}{_scalar(field)}"


def _kind_of(field: Any) -> str:
    holder = DescriptorProto()
    field.containing_type.CopyToProto(holder)
    if holder.field[field.index].label == FieldDescriptorProto.LABEL_REPEATED:
        return "repeated "
    if field.containing_oneof is not None:
        return f"oneof {field.containing_oneof.name} "
    return "optional " if field.has_presence and field.message_type is None else ""


def _scalar(field: Any) -> str:
    named = field.message_type or field.enum_type
    if named is not None:
        return str(named.name)
    kinds = {value: name for name, value in vars(type(field)).items() if name.startswith("TYPE_")}
    return kinds[field.type].removeprefix("TYPE_").lower()


def main() -> None:
    from tensorboard.compat.proto import graph_pb2

    version = importlib.metadata.version("tensorboard")
    written = {"source": f"tensorboard {version}", "format": described(graph_pb2.GraphDef.DESCRIPTOR)}
    STORED.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
