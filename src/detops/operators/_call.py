"""One call of an operator: chooses the backend, views the arguments as its arrays, and delivers the results."""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from detops.operators import _checks, _plain
from detops.runtime import _memory, _registry


class Space(Protocol):
    """Where arrays live: the host's memory, or a GPU's."""

    def array(self, name: str, value: Any) -> Any:
        """Return the value as an array of this space, without a copy where that is possible."""

    def cast(self, array: Any, dtype: np.dtype) -> Any:
        """Return the array C-contiguous, aligned, in native byte order, of this dtype; the array itself if it is so."""

    def empty(self, shape: Sequence[int], dtype: np.dtype) -> Any:
        """Return a new C-contiguous array."""

    def copy(self, source: Any, target: Any) -> None:
        """Write one array into another of the same shape, rounding to its dtype."""

    def owns(self, array: Any) -> bool:
        """Whether the array lives in this space, where a kernel can write to it."""

    def contiguous(self, array: Any) -> bool:
        """Whether an array of this space is C-contiguous and may be written to."""

    def overlap(self, first: Any, second: Any) -> bool:
        """Whether two arrays of this space may share memory."""

    def to_host(self, array: Any) -> np.ndarray:
        """Return the array as NumPy's, for checks of small arguments."""

    def wrap(self, array: Any) -> Any:
        """Return a result in the form that the caller expects."""

    def finish(self) -> None:
        """Let what the caller does next come after all that was launched."""


def _rounded(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return an array C-contiguous and of a dtype. What is out of its range is inf: rounding, not an error."""
    if not array.dtype.kind == dtype.kind == "f" or array.dtype.itemsize <= dtype.itemsize:
        return np.asarray(array, dtype, order="C")
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(array, dtype, order="C")


class Host:
    """NumPy arrays."""

    array = staticmethod(_plain.array)

    @functools.cached_property
    def empty(self) -> Callable[[Sequence[int], np.dtype], np.ndarray]:
        return _memory.empty()

    def cast(self, array: np.ndarray, dtype: np.dtype) -> np.ndarray:
        flags = array.flags
        if array.dtype == dtype and flags.c_contiguous and flags.aligned:
            return array
        try:
            cast = _rounded(array, dtype)
        except MemoryError:
            cast = _memory.with_room(_rounded, array, dtype)
        # Elements that lie where C's type may not are copied as those of another layout are.
        return cast if cast.flags.aligned else _memory.with_room(np.array, cast, order="C")

    def copy(self, source: np.ndarray, target: np.ndarray) -> None:
        if source.dtype == target.dtype:
            try:
                target[...] = source
            except MemoryError:
                _memory.with_room(np.copyto, target, source)
            return
        # A float16 result that is out of range is inf; that is rounding, not an error.
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            _memory.with_room(np.copyto, target, source, casting="unsafe")

    def owns(self, array: Any) -> bool:
        return isinstance(array, np.ndarray) and array.flags.aligned

    def contiguous(self, array: np.ndarray) -> bool:
        return array.flags.c_contiguous and array.flags.writeable

    def overlap(self, first: Any, second: Any) -> bool:
        return np.may_share_memory(first, second)

    def to_host(self, array: np.ndarray) -> np.ndarray:
        return array

    def wrap(self, array: np.ndarray) -> np.ndarray:
        return array

    def finish(self) -> None:
        pass


HOST = Host()


def on_gpu(value: Any) -> bool:
    """Whether an argument is an array that lives on a GPU."""
    if isinstance(value, np.ndarray) or value is None:
        return False
    if hasattr(value, "__cuda_array_interface__"):
        return True
    # DLPack's device types 2 and 13 are CUDA's device and managed memory; pinned memory (3) is left to NumPy.
    device = getattr(value, "__dlpack_device__", None)
    return device is not None and device()[0] in (2, 13)


_ndarray = np.ndarray


class Call:
    """One call of a public operator.

    Parameters
    ----------
    backend : str or None
        The ``backend=`` of the caller.
    **arrays
        The array arguments by name, None for an absent one: they decide the backend where the caller does not.
    """

    def __init__(self, backend: str | None, **arrays: Any) -> None:
        self.given = arrays
        self.space: Space = HOST
        foreign = [value for value in arrays.values() if type(value) is not _ndarray]
        gpu_array = next(filter(on_gpu, foreign), None) if foreign else None
        self.backend = _registry.choose(backend, gpu_array is not None)
        if self.backend == "cuda":
            self.space = _registry.of_backend("cuda", "arrays").Device(gpu_array)
        elif gpu_array is not None:
            kind = type(gpu_array).__name__
            raise TypeError(f"backend {self.backend!r}: expected arrays in host memory, got {kind} on a GPU")
        self.inputs: dict[str, Any] = arrays.copy()
        if foreign or self.space is not HOST:
            self.inputs = {name: self.space.array(name, value) for name, value in arrays.items() if value is not None}

    def __getitem__(self, name: str) -> Any:
        """Return an array argument that must be present, as this call's space sees it."""
        try:
            return self.inputs[name]
        except KeyError:
            raise TypeError(f"{name}: expected an array, got None") from None

    def get(self, name: str) -> Any:
        """Return an array argument that may be absent, which is None."""
        return self.inputs.get(name)

    def check_dtype(self, allowed: _checks.Dtypes, name: str, *more: str) -> np.dtype:
        """Check the dtypes of arguments that are present; return the type to compute the first in, which must be."""
        computed = allowed.of(name, self[name].dtype)
        for each in more:
            if each in self.inputs:
                allowed.of(each, self.inputs[each].dtype)
        return computed

    def read_empty(self, name: str, columns: int) -> None:
        """Read an array of shape (0,), as an empty list gives it, as one without rows, of shape (0, `columns`)."""
        array = self[name]
        if array.shape == (0,):
            self.inputs[name] = array.reshape((0, columns))

    def cast(self, name: str, dtype: np.dtype) -> Any:
        """Return an argument as a kernel takes it, None if it is absent."""
        array = self.inputs.get(name)
        return None if array is None else self.space.cast(array, dtype)

    def deliver(self, out: Any, result: Any) -> Any:
        """Return a result that is there, of the dtype that is wanted: as a new array, or written to ``out``."""
        if out is not None or self.space is not HOST:
            results = self.results(out, (result.shape, result.dtype, result.dtype))
            self.space.copy(result, results.buffers[0])
            return results.deliver()
        fresh = self.space.empty(result.shape, result.dtype)
        fresh[...] = result
        return fresh

    def results(
        self, out: Any, *wanted: tuple[Sequence[int], np.dtype, np.dtype], in_place: str | None = None
    ) -> "Results":
        """Check ``out`` and make room for results of (shape, dtype, the dtype that the kernel writes).

        ``in_place`` names an argument that the kernel can write over, where ``out`` is that very array.
        """
        return Results(self, out, wanted, in_place)


class Results:
    """Arrays that a kernel writes (``buffers``) and how they become what the caller gets (``deliver``)."""

    def __init__(
        self,
        call: Call,
        out: Any,
        wanted: Sequence[tuple[Sequence[int], np.dtype, np.dtype]],
        in_place: str | None = None,
    ) -> None:
        self._call = call
        self._given = out
        self._wanted = wanted
        empty = call.space.empty
        if out is None:
            self.buffers: list[Any] = [empty(shape, computed) for shape, _, computed in wanted]
            return
        outs = out if isinstance(out, tuple) else (out,)
        if len(outs) != len(wanted):
            raise ValueError(f"out: expected {_arrays(len(wanted))}, got {_arrays(len(outs))}")
        self._targets: list[Any] = [
            _check_out(call, target, tuple(shape), dtype)
            for target, (shape, dtype, _) in zip(outs, wanted, strict=True)
        ]
        if any(call.space.overlap(*pair) for pair in itertools.combinations(self._targets, 2)):
            raise ValueError("out: expected arrays that share no memory, got some that may")
        # Compared as the caller gave them: as this space sees them, one array may be two.
        self._in_place = None if in_place is None or call.given[in_place] is not outs[0] else in_place
        self.buffers = [
            target if self._writable_directly(target, computed) else empty(shape, computed)
            for target, (shape, _, computed) in zip(self._targets, wanted, strict=True)
        ]

    def _writable_directly(self, target: Any, computed: np.dtype) -> bool:
        space = self._call.space
        if target.dtype != computed or not space.owns(target):
            return False
        return not any(
            space.overlap(target, value) for name, value in self._call.inputs.items() if name != self._in_place
        )

    def deliver(self) -> Any:
        """Return the result, or a tuple of results, rounded to their dtypes and written to ``out``."""
        space = self._call.space
        if self._given is not None:
            for buffer, target in zip(self.buffers, self._targets, strict=True):
                if target is not buffer:
                    space.copy(buffer, target)
            space.finish()
            return self._given
        finished = self.buffers
        for i, (_, dtype, computed) in enumerate(self._wanted):
            if computed is not dtype and computed != dtype:
                finished[i] = self._rounded(finished[i], dtype)
        if space is not HOST:
            finished = [space.wrap(result) for result in finished]
            space.finish()
        return finished[0] if len(finished) == 1 else tuple(finished)

    def _rounded(self, buffer: Any, dtype: np.dtype) -> Any:
        rounded = self._call.space.empty(buffer.shape, dtype)
        self._call.space.copy(buffer, rounded)
        return rounded


def _arrays(count: int) -> str:
    return "an array" if count == 1 else f"a tuple of {count} arrays"


def _check_out(call: Call, out: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    if on_gpu(out):
        if call.backend != "cuda":
            raise ValueError(f"out: expected an array in host memory, got {type(out).__name__} on a GPU")
        target, space = call.space.array("out", out), call.space
    elif isinstance(out, np.ndarray):
        if _plain.masks(out):
            raise ValueError("out: expected an array without masked elements, got one that masks some")
        target, space = _plain.array("out", out), HOST
    else:
        raise ValueError(f"out: expected an array, got {type(out).__name__}")
    if tuple(target.shape) != shape or target.dtype != dtype:
        got = f"{tuple(target.shape)} and {target.dtype}"
        raise ValueError(f"out: expected shape {shape} and dtype {dtype}, got {got}")
    if not space.contiguous(target):
        raise ValueError("out: expected a C-contiguous and writable array, got one that is not")
    return target
