"""Arrays on the GPU: the counterpart of ``Host`` in ``detops.operators._call``."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from detops._cuda.device import LEGACY_STREAM, SIMULATED, STREAM, cuda, empty, jit, launch, to_device
from detops._extras import hint
from detops.operators._call import HOST, on_gpu


class _DLPack:
    """A `__cuda_array_interface__` for an array on the GPU that has DLPack alone; it keeps the array alive."""

    def __init__(self, name: str, array: Any) -> None:
        try:
            from cuda.core.utils import StridedMemoryView
        except ImportError as error:
            needs = f"{name}: an array that speaks DLPack alone needs cuda.core ({error})"
            raise ImportError(f"{needs}; {hint('cuda')}") from error
        try:
            # The producer makes our stream wait for the array's contents.
            view = StridedMemoryView.from_dlpack(array, stream_ptr=STREAM)
            dtype = view.dtype
        except (TypeError, ValueError, BufferError, RuntimeError) as error:
            raise TypeError(f"{name}: expected an array, got {type(array).__name__} ({error})") from error
        # Libraries differ in the strides that they give an empty array; they mean nothing.
        contiguous = view.strides is None or not view.size
        self._view = view
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": view.shape,
            "strides": None if contiguous else tuple(stride * dtype.itemsize for stride in view.strides),
            "typestr": dtype.str,
            "data": (view.ptr, view.readonly),
        }


@jit
def _copy(source, target):
    """Write an array of any strides into a flat one, rounding to its dtype."""
    for i in range(cuda.grid(1), target.size, cuda.gridsize(1)):
        target[i] = source.flat[i]


def _described(name: str, value: Any) -> Any:
    """Return an object with a `__cuda_array_interface__`: the array itself, or one that describes it.

    Before its version 3 (torch's) the interface names no stream: DLPack makes the default stream wait instead.
    """
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is None or (interface["version"] < 3 and hasattr(value, "__dlpack__")):
        return _DLPack(name, value)
    return value


def _check_pointer(name: str, array: Any) -> None:
    """Raise ValueError for an array that a kernel cannot read: of another GPU than the current, or not aligned."""
    from cuda.bindings import driver

    start, current = _start(array), cuda.current_context().device.id
    ordinal = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    error, device = driver.cuPointerGetAttribute(ordinal, start)
    if error == driver.CUresult.CUDA_SUCCESS and device != current:
        raise ValueError(f"{name}: expected an array on GPU {current}, the current one, got one on GPU {device}")
    if start % array.dtype.alignment:
        raise ValueError(f"{name}: expected an aligned array, got one of {array.dtype} at address {start:#x}")


class Device:
    """Arrays of Numba's CUDA target.

    Parameters
    ----------
    like : array or None
        An input that lives on the GPU: results take its library's type. None where every input came from the host:
        results go back there.
    """

    def __init__(self, like: Any) -> None:
        self._like = like
        self._library = "" if like is None else type(like).__module__.partition(".")[0]
        # Numba's arrays do not remember it.
        self._read_only: list[Any] = []

    def array(self, name: str, value: Any) -> Any:
        # A host array moves when it is cast: what a kernel does not take never does.
        if not on_gpu(value):
            return HOST.array(name, value)
        described = _described(name, value)
        array = cuda.as_cuda_array(described)
        # Numba has waited for the stream that the array names. All that follows runs on the default stream, and a copy
        # to the host on another one would not wait.
        array.stream = 0
        if not SIMULATED and array.size:
            _check_pointer(name, array)
        if described.__cuda_array_interface__["data"][1]:
            self._read_only.append(array)
        return array

    def cast(self, array: Any, dtype: np.dtype) -> Any:
        if isinstance(array, np.ndarray):
            return to_device(HOST.cast(array, dtype))
        if array.dtype == dtype and array.is_c_contiguous():
            return array
        fresh = self.empty(array.shape, dtype)
        self.copy(array, fresh)
        return fresh

    def empty(self, shape: Sequence[int], dtype: np.dtype) -> Any:
        return empty(shape, dtype)

    def copy(self, source: Any, target: Any) -> None:
        if isinstance(target, np.ndarray):
            HOST.copy(self.to_host(source), target)
        elif isinstance(source, np.ndarray):
            target.copy_to_device(HOST.cast(source, target.dtype))
        else:
            launch(_copy, source.size, source, target.ravel())

    def owns(self, array: Any) -> bool:
        return not isinstance(array, np.ndarray)

    def contiguous(self, array: Any) -> bool:
        return array.is_c_contiguous() and not any(array is each for each in self._read_only)

    def overlap(self, first: Any, second: Any) -> bool:
        on_host = [isinstance(array, np.ndarray) for array in (first, second)]
        if any(on_host):
            return all(on_host) and HOST.overlap(first, second)
        return _start(first) < _end(second) and _start(second) < _end(first)

    def to_host(self, array: Any) -> np.ndarray:
        if isinstance(array, np.ndarray):
            return array
        # Numba copies no array of negative strides to the host.
        return self.cast(array, array.dtype).copy_to_host()

    def wrap(self, array: Any) -> Any:
        if self._like is None:
            return array.copy_to_host()
        if self._library == "cupy":
            import cupy

            return cupy.asarray(array)
        if self._library == "torch":
            import torch

            return torch.as_tensor(array, device=self._like.device)
        return array

    def finish(self) -> None:
        # The stream that the library works on need not be the default one, on which all kernels have been launched.
        if self._library == "torch":
            from torch import cuda as torch

            stream = torch.current_stream(self._like.device)
            stream.wait_stream(torch.default_stream(self._like.device))
        elif self._library == "cupy":
            from cupy.cuda import Stream, get_current_stream

            get_current_stream().wait_event(Stream.null.record())
        if self._library and STREAM != LEGACY_STREAM:
            cuda.default_stream().synchronize()


def _start(array: Any) -> int:
    return array.__cuda_array_interface__["data"][0]


def _end(array: Any) -> int:
    return _start(array) + array.size * array.dtype.itemsize
