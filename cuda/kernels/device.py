"""The one place that imports ``numba.cuda``: compiling and launching kernels, on a GPU or in the simulator."""

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import config, cuda

from detops._core import scalar

SIMULATED = bool(config.ENABLE_CUDASIM)  # type: ignore[attr-defined]

# A simulated thread is a thread of Python: few of them, over more than one block, show the same mistakes. Numba warns
# of a grid of fewer than 128 blocks; blocks without an item of their own end at once.
THREADS = 3 if SIMULATED else 128
MIN_BLOCKS = 1 if SIMULATED else 128
MAX_BLOCKS = 2 if SIMULATED else 65535

# DLPack's number of the stream that kernels run on: the legacy default stream, or the default stream of the thread.
# NVIDIA's bindings, through which numba-cuda launches, read this variable; they do not read Numba's own.
LEGACY_STREAM, STREAM_OF_THREAD = 1, 2
_per_thread = os.environ.get("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", "0") not in ("", "0")
STREAM = STREAM_OF_THREAD if _per_thread else LEGACY_STREAM

OUT_OF_MEMORY = 2

# The simulator patches global state while a kernel runs, so two launches must not overlap there.
_one_at_a_time = threading.Lock()


if not SIMULATED:
    from numba import types
    from numba.cuda import libdevice
    from numba.extending import overload

    @overload(scalar.product, target="cuda")
    def _rounded_product(a, b):
        # NVVM and ptxas fuse a plain multiplication into a sum, where the CPU kernels round in between.
        multiply = libdevice.fmul_rn if a == types.float32 else libdevice.dmul_rn
        return lambda a, b: multiply(a, b)


def jit(kernel: Callable[..., None]) -> Callable[..., None]:
    """Compile a kernel. Its loop strides over the grid: ``for i in range(cuda.grid(1), items, cuda.gridsize(1))``."""
    return cuda.jit(kernel)


def launch(kernel: Any, items: int, *arguments: Any) -> None:
    """Run a kernel over a grid of at least one thread for each item, as far as grids go."""
    if items < 1:
        return
    blocks = min(max(-(-items // THREADS), MIN_BLOCKS), MAX_BLOCKS)
    if SIMULATED:
        with _one_at_a_time:
            kernel[blocks, THREADS](*arguments)
    else:
        kernel[blocks, THREADS](*arguments)


def empty(shape: int | Sequence[int], dtype: np.dtype) -> Any:
    """Return a new C-contiguous array on the GPU; MemoryError where it has no room."""
    return _allocated(cuda.device_array, shape if isinstance(shape, int) else tuple(shape), dtype)


def to_device(array: np.ndarray) -> Any:
    """Return a copy on the GPU; MemoryError where it has no room."""
    return _allocated(cuda.to_device, array)


def _allocated(make: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return make(*arguments)
    except Exception as error:  # the driver's class of errors, which the simulator lacks
        if getattr(error, "code", None) != OUT_OF_MEMORY:
            raise
        raise MemoryError("the GPU has no memory left for an array") from error


def can_run() -> None:
    """Raise ImportError where no kernel can run."""
    if not SIMULATED and not cuda.is_available():
        raise ImportError("Numba finds no CUDA driver with a GPU")
