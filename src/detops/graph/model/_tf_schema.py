"""TensorFlow's GraphDef and SavedModel messages, built at run time on the protobuf runtime that onnx needs.

Only the numbers and types of the public format stand here. A GraphDef is complete: its text form needs every field and
every constant named. Of a SavedModel only the way to its graph is named; the rest survives a round trip through the
binary form as unknown fields.
"""

from __future__ import annotations

from functools import cache
from typing import Any

PACKAGE = "tensorflow"

# FieldDescriptorProto.Label
_OPTIONAL, _REPEATED = 1, 3

# message: "name number type|...", the type after * where repeated, ? where a member of the oneof, "key:" where a map
_MESSAGES: dict[str, str] = {
    "TensorShapeProto": "dim 2 *Dim|unknown_rank 3 bool",
    "Dim": "size 1 int64|name 2 string",
    "ResourceHandleProto": "device 1 string|container 2 string|name 3 string|hash_code 4 uint64"
    "|maybe_type_name 5 string|dtypes_and_shapes 6 *DtypeAndShape",
    "DtypeAndShape": "dtype 1 DataType|shape 2 TensorShapeProto",
    "VariantTensorDataProto": "type_name 1 string|metadata 2 bytes|tensors 3 *TensorProto",
    "TensorProto": "dtype 1 DataType|tensor_shape 2 TensorShapeProto|version_number 3 int32|tensor_content 4 bytes"
    "|half_val 13 *int32|float_val 5 *float|double_val 6 *double|int_val 7 *int32|string_val 8 *bytes"
    "|scomplex_val 9 *float|int64_val 10 *int64|bool_val 11 *bool|dcomplex_val 12 *double"
    "|resource_handle_val 14 *ResourceHandleProto|variant_val 15 *VariantTensorDataProto"
    "|uint32_val 16 *uint32|uint64_val 17 *uint64|float8_val 18 bytes",
    "ListValue": "s 2 *bytes|i 3 *int64|f 4 *float|b 5 *bool|type 6 *DataType|shape 7 *TensorShapeProto"
    "|tensor 8 *TensorProto|func 9 *NameAttrList",
    "AttrValue": "s 2 ?bytes|i 3 ?int64|f 4 ?float|b 5 ?bool|type 6 ?DataType|shape 7 ?TensorShapeProto"
    "|tensor 8 ?TensorProto|list 1 ?ListValue|func 10 ?NameAttrList|placeholder 9 ?string",
    "NameAttrList": "name 1 string|attr 2 string:AttrValue",
    "FullTypeDef": "type_id 1 FullTypeId|args 2 *FullTypeDef|s 3 ?string|i 4 ?int64",
    "ExperimentalDebugInfo": "original_node_names 1 *string|original_func_names 2 *string",
    "NodeDef": "name 1 string|op 2 string|input 3 *string|device 4 string|attr 5 string:AttrValue"
    "|experimental_debug_info 6 ExperimentalDebugInfo|experimental_type 7 FullTypeDef",
    "ArgDef": "name 1 string|description 2 string|type 3 DataType|type_attr 4 string|number_attr 5 string"
    "|type_list_attr 6 string|handle_data 7 *DtypeAndShape|is_ref 16 bool|experimental_full_type 17 FullTypeDef",
    "AttrDef": "name 1 string|type 2 string|default_value 3 AttrValue|description 4 string|has_minimum 5 bool"
    "|minimum 6 int64|allowed_values 7 AttrValue",
    "OpDeprecation": "version 1 int32|explanation 2 string",
    "OpDef": "name 1 string|input_arg 2 *ArgDef|output_arg 3 *ArgDef|control_output 20 *string|attr 4 *AttrDef"
    "|deprecation 8 OpDeprecation|summary 5 string|description 6 string|is_commutative 18 bool|is_aggregate 16 bool"
    "|is_stateful 17 bool|allows_uninitialized_input 19 bool|is_distributed_communication 21 bool",
    "ArgAttrs": "attr 1 string:AttrValue",
    "FunctionDef": "signature 1 OpDef|attr 5 string:AttrValue|arg_attr 7 uint32:ArgAttrs"
    "|resource_arg_unique_id 8 uint32:uint32|node_def 3 *NodeDef|ret 4 string:string|control_ret 6 string:string",
    "GradientDef": "function_name 1 string|gradient_func 2 string",
    "RegisteredGradient": "gradient_func 1 string|registered_op_type 2 string",
    "FunctionDefLibrary": "function 1 *FunctionDef|gradient 2 *GradientDef|registered_gradients 3 *RegisteredGradient",
    "VersionDef": "producer 1 int32|min_consumer 2 int32|bad_consumers 3 *int32",
    "GraphDef": "node 1 *NodeDef|versions 4 VersionDef|version 3 int32|library 2 FunctionDefLibrary"
    "|debug_info 5 GraphDebugInfo",
    "MetaGraphDef": "graph_def 2 GraphDef",
    "SavedModel": "saved_model_schema_version 1 int64|meta_graphs 2 *MetaGraphDef",
    # what a MetaGraphDef names of its graph; read by itself, so that a MetaGraphDef comes back byte by byte
    "GraphNames": "collection_def 4 string:CollectionDef|signature_def 5 string:SignatureDef",
    "CollectionDef": "node_list 1 NodeList",
    "NodeList": "value 1 *string",
    "SignatureDef": "inputs 1 string:TensorInfo|outputs 2 string:TensorInfo",
    "TensorInfo": "name 1 string|coo_sparse 4 CooSparse|composite_tensor 5 CompositeTensor",
    "CooSparse": "values_tensor_name 1 string|indices_tensor_name 2 string|dense_shape_tensor_name 3 string",
    "CompositeTensor": "components 2 *TensorInfo",
}

# Messages of proto2: they tell a field that is given from one that is 0.
_DEBUG_MESSAGES: dict[str, str] = {
    "GraphDebugInfo": "files 1 *string|frames_by_id 4 fixed64:FileLineCol|traces_by_id 6 fixed64:StackTrace"
    "|traces 2 string:StackTrace|name_to_trace_id 5 string:fixed64",
    "FileLineCol": "file_index 1 int32|line 2 int32|col 3 int32|func 4 string|code 5 string",
    "StackTrace": "file_line_cols 1 *FileLineCol|frame_id 2 *fixed64",
}

_ONEOFS = {"AttrValue": "value", "FullTypeDef": "attr"}

_DATA_TYPES = (
    "INVALID FLOAT DOUBLE INT32 UINT8 INT16 INT8 STRING COMPLEX64 INT64 BOOL QINT8 QUINT8 QINT32 BFLOAT16 QINT16 "
    "QUINT16 UINT16 COMPLEX128 HALF RESOURCE VARIANT UINT32 UINT64 FLOAT8_E5M2 FLOAT8_E4M3FN FLOAT8_E4M3FNUZ "
    "FLOAT8_E4M3B11FNUZ FLOAT8_E5M2FNUZ INT4 UINT4 INT2 UINT2 FLOAT4_E2M1FN"
)
DATA_TYPES = tuple(_DATA_TYPES.split())

# The names of constants, from a number on.
_FULL_TYPES = {
    0: "UNSET VAR ANY PRODUCT NAMED",
    20: "FOR_EACH",
    100: "CALLABLE",
    200: "BOOL UINT8 UINT16 UINT32 UINT64 INT8 INT16 INT32 INT64 HALF FLOAT DOUBLE COMPLEX64 COMPLEX128",
    214: "STRING BFLOAT16",
    1000: "TENSOR ARRAY OPTIONAL LITERAL ENCODED SHAPE_TENSOR",
    10102: "DATASET RAGGED ITERATOR",
    10202: "MUTEX_LOCK LEGACY_VARIANT",
}
_ENUMS = {
    "DataType": {f"DT_{name}": number for number, name in enumerate(DATA_TYPES)}
    | {f"DT_{name}_REF": number + 100 for number, name in enumerate(DATA_TYPES) if number},
    "FullTypeId": {
        f"TFT_{name}": first + i for first, names in _FULL_TYPES.items() for i, name in enumerate(names.split())
    },
}


@cache
def messages() -> dict[str, Any]:
    """Return the message classes by name. They live in a pool of their own and never meet TensorFlow's."""
    from google.protobuf import descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file("detops_graph_debug_info.proto", "proto2", _DEBUG_MESSAGES))
    file = _file("detops_graph_def.proto", "proto3", _MESSAGES)
    file.dependency.append("detops_graph_debug_info.proto")
    for name, constants in _ENUMS.items():
        enum = file.enum_type.add(name=name)
        for constant, number in constants.items():
            enum.value.add(name=constant, number=number)
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in (*_DEBUG_MESSAGES, *_MESSAGES)
    }


def _file(name: str, syntax: str, declared: dict[str, str]) -> Any:
    """Return a file of messages."""
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name=name, package=PACKAGE, syntax=syntax)
    for message_name, fields in declared.items():
        message = file.message_type.add(name=message_name)
        if message_name in _ONEOFS:
            message.oneof_decl.add(name=_ONEOFS[message_name])
        for declaration in fields.split("|"):
            _add_field(message, *declaration.split())
    return file


def _add_field(message: Any, name: str, number: str, kind: str) -> None:
    field = message.field.add(name=name, number=int(number), label=_OPTIONAL)
    key, _, kind = kind.rpartition(":")
    marker, kind = (kind[0], kind[1:]) if kind[0] in "*?" else ("", kind)
    if key:
        kind = _add_map_entry(message, name, key, kind)
    if key or marker == "*":
        field.label = _REPEATED
    if marker == "?":
        field.oneof_index = 0
    _set_type(field, kind)
    if field.label == _REPEATED and field.type not in (field.TYPE_STRING, field.TYPE_BYTES, field.TYPE_MESSAGE):
        field.options.packed = True


def _add_map_entry(message: Any, field_name: str, key: str, value: str) -> str:
    entry = message.nested_type.add(name="".join(part.title() for part in field_name.split("_")) + "Entry")
    entry.options.map_entry = True
    for number, (name, kind) in enumerate((("key", key), ("value", value)), start=1):
        _set_type(entry.field.add(name=name, number=number, label=_OPTIONAL), kind)
    return f"{message.name}.{entry.name}"


def _set_type(field: Any, kind: str) -> None:
    if kind[0].isupper():
        field.type = field.TYPE_ENUM if kind in _ENUMS else field.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{kind}"
    else:
        field.type = getattr(field, f"TYPE_{kind.upper()}")
