"""The one place that imports ``numba.cuda``: compiling and launching kernels, on a GPU or in the simulator."""

import threading
from collections.abc import Callable
from typing import Any

from numba import config, cuda

from detops._core import scalar

SIMULATED = bool(config.ENABLE_CUDASIM)  # type: ignore[attr-defined]

# A simulated thread is a thread of Python: few of them, over more than one block, show the same mistakes. Numba warns
# of a grid of fewer than 128 blocks; blocks without an item of their own end at once.
THREADS = 3 if SIMULATED else 128
MIN_BLOCKS = 1 if SIMULATED else 128
MAX_BLOCKS = 2 if SIMULATED else 65535

# DLPack's number of the stream that kernels run on: the legacy default stream, or the default stream of the thread.
STREAM = 2 if config.CUDA_PER_THREAD_DEFAULT_STREAM else 1  # type: ignore[attr-defined]

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


def can_run() -> None:
    """Raise ImportError where no kernel can run."""
    if not SIMULATED and not cuda.is_available():
        raise ImportError("Numba finds no CUDA driver with a GPU")
