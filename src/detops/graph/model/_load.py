"""Finds out what kind of model it was given, reads it, and writes the same kind back."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from detops.graph.model import _onnx_io, _tf_io
from detops.graph.model._graph import Graph
from detops.graph.model._tf_schema import messages

WANTED = "an ONNX model or a TensorFlow GraphDef (a message, its bytes, its text or the path of its file)"


@dataclass(frozen=True)
class Loaded:
    """A model as a protobuf message of our own (never the caller's), and the way back."""

    proto: Any  # onnx.ModelProto, or a GraphDef
    graphs: list[Graph]
    restore: Callable[[Any], Any]  # from a message like `proto` to the kind that came in
    saved: bool = False  # the graph is a SavedModel's

    @property
    def dialect(self) -> str:
        """The kind of graph: "onnx" or "tensorflow"."""
        return "onnx" if hasattr(self.proto, "opset_import") else "tensorflow"

    def reread(self, proto: Any) -> list[Graph]:
        """Return the views of another message of this kind."""
        return _onnx_io.read_graphs(proto, None) if self.dialect == "onnx" else [_tf_io.read_graph(proto)]


def load(model: Any) -> Loaded:
    """Read a model of any kind that `find_decode_bbox` takes."""
    with _no_collection():
        return _load(model)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Let Python's collector of cycles rest: what is read stays, and to go through it again and again costs a quarter.

    Of several threads, the one that found the collector at work lets it go on.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _load(model: Any) -> Loaded:
    directory = None
    if isinstance(model, str) and "{" in model and not os.path.exists(model):
        return _load_text(model)
    if isinstance(model, (str, os.PathLike)):
        path = Path(model)
        if path.is_dir():
            path = path / "saved_model.pb"
        try:
            model, directory = path.read_bytes(), str(path.parent)
        except OSError as error:
            raise ValueError(f"model: cannot read {str(path)!r} ({error.strerror})") from error
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _load_bytes(bytes(model), directory)
    name = getattr(getattr(model, "DESCRIPTOR", None), "full_name", "")
    if name == "onnx.ModelProto":
        copy = type(model)()
        copy.CopyFrom(model)
        return Loaded(copy, _onnx_io.read_graphs(copy, None), lambda proto: proto)
    if name in ("tensorflow.GraphDef", "tensorflow.SavedModel"):
        loaded = _load_bytes(model.SerializeToString(), None)
        return replace(loaded, restore=lambda proto: type(model).FromString(loaded.restore(proto)))
    raise TypeError(f"model: expected {WANTED}, got {type(model).__name__}")


def _load_bytes(data: bytes, directory: str | None) -> Loaded:
    import onnx
    from google.protobuf.message import DecodeError

    def parse(kind: Any) -> Any:
        try:
            return kind.FromString(data)
        except DecodeError:
            return None

    if not data:
        raise ValueError(f"model: expected {WANTED}, got no bytes at all")
    if data[4:8] == b"ORTM":
        raise ValueError(f"model: expected {WANTED}, got ONNX Runtime's own format (.ort), which detops run takes")
    proto = parse(onnx.ModelProto)
    if proto is not None and proto.HasField("graph"):
        return Loaded(proto, _onnx_io.read_graphs(proto, directory), lambda proto: proto.SerializeToString())
    saved = parse(messages()["SavedModel"])
    if saved is not None and saved.meta_graphs and saved.meta_graphs[0].graph_def.node:
        return _load_saved(saved)
    proto = parse(messages()["GraphDef"])
    if proto is not None and proto.node and all(node.name for node in proto.node):
        return Loaded(proto, [_tf_io.read_graph(proto)], lambda proto: proto.SerializeToString())
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if "node" in text and "{" in text:
        loaded = _load_text(text)
        return Loaded(loaded.proto, loaded.graphs, lambda proto: loaded.restore(proto).encode())
    raise ValueError(f"model: expected {WANTED}, got {len(data)} bytes that are neither (or are cut short)")


def _load_saved(saved: Any) -> Loaded:
    graph_def = messages()["GraphDef"]()
    graph_def.CopyFrom(saved.meta_graphs[0].graph_def)

    def restore(proto: Any) -> bytes:
        changed = type(saved)()
        changed.CopyFrom(saved)
        changed.meta_graphs[0].graph_def.CopyFrom(proto)
        return bytes(changed.SerializeToString())

    fed, read = _named(saved.meta_graphs[0])
    return Loaded(graph_def, [_tf_io.read_graph(graph_def, fed, read)], restore, saved=True)


def _named(meta_graph: Any) -> tuple[set[str], set[str]]:
    """Return the tensors that the signatures of a SavedModel feed, and those that they or its collections read."""
    names = messages()["GraphNames"].FromString(meta_graph.SerializeToString())
    fed = {name for each in names.signature_def.values() for info in each.inputs.values() for name in _tensors(info)}
    read = {name for each in names.signature_def.values() for info in each.outputs.values() for name in _tensors(info)}
    return fed, read | {name for each in names.collection_def.values() for name in each.node_list.value}


def _tensors(info: Any) -> list[str]:
    """Return the names in a TensorInfo: of one tensor, or of the parts of a sparse or another one."""
    sparse = info.coo_sparse
    listed = [info.name, sparse.values_tensor_name, sparse.indices_tensor_name, sparse.dense_shape_tensor_name]
    return [name for name in listed if name] + [
        name for part in info.composite_tensor.components for name in _tensors(part)
    ]


def _load_text(text: str) -> Loaded:
    from google.protobuf import text_format

    try:
        proto = text_format.Parse(text, messages()["GraphDef"]())
    except text_format.ParseError as error:
        raise ValueError(f"model: the text is no TensorFlow GraphDef ({error})") from error
    return Loaded(proto, [_tf_io.read_graph(proto)], text_format.MessageToString)
