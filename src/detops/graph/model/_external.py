"""Weights that an ONNX model keeps in files of their own, beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from detops._files import written_in_one_step
from detops.onnx._shapes import bodies

PAGE = 4096  # runtimes map weights that begin on a page
CHUNK = 1 << 20
LIMIT = 0x7FF0_0000  # what a message of protobuf holds, but for a little

Region = tuple[str, int, int]  # file, offset, length


def tensors(model: Any) -> Iterator[Any]:
    """Yield the tensors of a model, wherever they stand, whose data are in another file."""
    graphs = [model.graph]
    nodes = [node for function in model.functions for node in function.node]
    while graphs or nodes:
        if graphs:
            graph = graphs.pop()
            nodes += graph.node
            found = [*graph.initializer]
            found += [part for sparse in graph.sparse_initializer for part in (sparse.values, sparse.indices)]
        else:
            node = nodes.pop()
            graphs += bodies(node)
            found = [tensor for each in node.attribute for tensor in (each.t, *each.tensors)]
        yield from (tensor for tensor in found if tensor.data_location == tensor.EXTERNAL)


def check(model: Any, folder: Path) -> None:
    """Raise ValueError where data that a model in `folder` refers to are missing or cut short."""
    for tensor in tensors(model):
        _region(tensor, folder)


def _region(tensor: Any, folder: Path) -> Region:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = PurePosixPath(entries.get("location", ""))
    if not location.name or location.is_absolute() or ".." in location.parts:
        raise ValueError(
            f"model: the data of {tensor.name!r} are expected in a file below its folder, got {str(location)!r}"
        )
    file = folder / location
    if not file.is_file():
        raise ValueError(
            f"model: the data of {tensor.name!r} are expected in the file {str(file)!r}, which is not there"
        )
    size = file.stat().st_size
    try:
        offset = int(entries.get("offset", 0))
        length = int(entries.get("length", size - offset))
    except ValueError as error:
        raise ValueError(f"model: the data of {tensor.name!r} have no valid place ({error})") from error
    if offset < 0 or length < 0 or offset + length > size:
        raise ValueError(
            f"model: the data of {tensor.name!r} go to byte {offset + length} of {str(file)!r}, which has {size}"
        )
    return str(file), offset, length


@contextmanager
def brought(model: Any, folder: Path, path: Path) -> Iterator[None]:
    """Let a model of `folder`, which is going to be written to `path` in this block, take its data along.

    They go into the model itself, or into one file beside `path` where they are more than one message holds. Such
    models may be larger than memory too, so these data pass through in pieces.
    """
    regions = [(tensor, _region(tensor, folder)) for tensor in tensors(model)]
    if model.ByteSize() + sum(length for _, (_, _, length) in regions) <= LIMIT:
        for tensor, region in regions:
            tensor.raw_data = _bytes(region)
            tensor.ClearField("data_location")
            tensor.ClearField("external_data")
        yield
        return
    with written_in_one_step(path.with_name(f"{path.name}.data")) as file:
        offsets: dict[Region, int] = {}
        for region in dict.fromkeys(region for _, region in regions):
            offsets[region] = -(-file.tell() // PAGE) * PAGE
            file.seek(offsets[region])
            _copy(region, file)
        file.truncate()
        file.flush()  # a full disk is met before the model is there
        for tensor, region in regions:
            del tensor.external_data[:]
            for key, value in (("location", f"{path.name}.data"), ("offset", offsets[region]), ("length", region[2])):
                tensor.external_data.add(key=key, value=str(value))
        yield


def _bytes(region: Region) -> bytes:
    name, offset, length = region
    with open(name, "rb") as source:
        source.seek(offset)
        return source.read(length)


def _copy(region: Region, target: BinaryIO) -> None:
    name, position, length = region
    end = position + length
    with open(name, "rb", buffering=0) as source:
        while position < end:
            begin = min(_next_data(source, position), end)
            target.seek(begin - position, os.SEEK_CUR)  # holes stay holes
            source.seek(begin)
            data = source.read(min(CHUNK, end - begin))
            if not data and begin < end:
                raise ValueError(f"model: {name!r} became shorter while it was read")
            target.write(data)
            position = begin + len(data)


def _next_data(file: Any, position: int) -> int:
    """Where a file has data again, from a position on; the position itself where nobody knows."""
    try:
        return os.lseek(file.fileno(), position, os.SEEK_DATA)
    except (AttributeError, OSError):
        return position
