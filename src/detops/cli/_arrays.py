"""Arrays as models take and give them: reading .npy and .npz, types, results of any kind, writing .npz."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from detops._files import written_in_one_step

Arrays = dict[str, np.ndarray]

SUFFIXES = (".npy", ".npz")


def said(error: BaseException) -> str:
    """Return what an error says, in one line; its kind, where it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__


def read_array(file: str, name: str) -> np.ndarray:
    """Read an .npy, or from an .npz the array of this name or the only one.

    Raises
    ------
    ValueError
        If the file is damaged, is no such file, or holds Python objects.
    OSError
        If it cannot be opened.
    MemoryError
        If the array that it says it holds does not fit; the message names the file.
    """
    if file.lower().endswith(".npy"):
        with open(file, "rb") as stream, _said_of(file, ".npy"):
            return np.lib.format.read_array(stream, allow_pickle=False)
    with open(file, "rb") as stream, _said_of(file, ".npz"), zipfile.ZipFile(stream) as archive:
        members = {member.removesuffix(".npy"): member for member in archive.namelist()}
        if name not in members and len(members) != 1:
            raise _Missing(f"{file}: expected an array {name!r}, got {', '.join(members) or 'none'}")
        with archive.open(members.get(name, next(iter(members.values())))) as member:
            return np.lib.format.read_array(member, allow_pickle=False)


class _Missing(ValueError):
    """An error whose text is complete: nothing is added to it."""


@contextmanager
def _said_of(file: str, kind: str) -> Iterator[None]:
    try:
        yield
    except _Missing as error:
        raise ValueError(str(error)) from None
    except MemoryError as error:
        raise MemoryError(f"{file}: {error}") from error
    except Exception as error:  # parsers meet damaged files with exceptions of any kind
        raise ValueError(f"{file}: expected a whole {kind} ({said(error)})") from error


def fitted(array: np.ndarray, dtype: Any, what: str) -> np.ndarray:
    """Return an array in the type of an input, in native byte order; only casts that keep every value are made.

    Raises
    ------
    ValueError
        If a cast could change values.
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "O" and array.dtype.kind == "U":
        return array.astype(object)
    if dtype.kind == "V" and array.dtype == f"V{dtype.itemsize}":  # bfloat16 and its kin, as .npy holds them
        return array.view(dtype)
    if dtype.kind != "O" and np.can_cast(array.dtype, dtype, "safe"):
        return array.astype(dtype, copy=False)
    wanted = "text" if dtype.kind == "O" else str(dtype)
    raise ValueError(f"{what}: expected {wanted}, got {array.dtype}, which may hold values that {wanted} cannot")


def named_arrays(results: Mapping[str, Any]) -> Arrays:
    """Return results as arrays: a sequence NAME becomes NAME.0, NAME.1, ..., and NAME.length.

    Raises
    ------
    ValueError
        If a result is neither a tensor nor a sequence of tensors, or two would have one name.
    """
    arrays: Arrays = {}
    for name, value in results.items():
        parts = {name: value}
        if isinstance(value, (list, tuple)):
            parts = {f"{name}.{i}": element for i, element in enumerate(value)} | {f"{name}.length": len(value)}
        for key, element in parts.items():
            if key in arrays:
                raise ValueError(f"output {name}: expected names that differ, got {key!r} twice")
            arrays[key] = _plain(element, name)
    return arrays


def _plain(value: Any, name: str) -> np.ndarray:
    if not isinstance(value, (np.ndarray, np.generic, int)):
        raise ValueError(f"output {name}: expected a tensor or a sequence of tensors, got {type(value).__name__}")
    array = np.asarray(value)
    if array.dtype.kind != "O":
        return array
    # Text comes as Python objects, which files don't hold.
    if not all(isinstance(element, str) for element in array.flat):
        raise ValueError(f"output {name}: expected numbers or text, got Python objects")
    return array.astype(str)


def save(output: str, results: Mapping[str, np.ndarray], scratch: str | None = None) -> None:
    """Write results as .npz in one step: the file is there complete, or not at all."""
    # As numpy.savez_compressed, which takes no array of the name "file".
    with written_in_one_step(output, scratch) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, array in results.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
