"""Joins the stand-in driver, the translator and Numba, in a process that ``process.py`` has started."""

import ctypes
import hashlib
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from numba.cuda import dispatcher

from tests.emulated_gpu.ptx import Entry

# No contraction and wrapping integers, as on a GPU; rounding modes are changed while a kernel runs.
FLAGS = ["-O1", "-w", "-shared", "-fPIC", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-frounding-math"]


class Machine:
    """The emulated GPU.

    Parameters
    ----------
    folder : str
        Where the driver was built, and where compiled kernels go.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.driver.emulator_logged.restype = ctypes.c_char_p
        self.driver.emulator_damage.restype = ctypes.c_long
        self.driver.emulator_memory.argtypes = [ctypes.c_size_t]
        self.driver.emulator_memory_in_use.restype = ctypes.c_size_t
        self._code: dict[str, Any] = {}
        original = dispatcher._Kernel.launch

        def launch(kernel: Any, *arguments: Any, **options: Any) -> Any:
            self._provide(kernel)
            return original(kernel, *arguments, **options)

        dispatcher._Kernel.launch = launch

    def _provide(self, kernel: Any) -> None:
        """Compile a kernel for the CPU before its first launch, and tell the driver."""
        library = kernel._codelibrary
        name = kernel.entry_name
        if name in self._code:
            return
        source = Entry(library.get_asm_str(), name).source()
        path = self._folder / hashlib.sha256(source.encode()).hexdigest()[:16]
        path.with_suffix(".c").write_text(source)
        subprocess.run(["gcc", *FLAGS, "-o", f"{path}.so", f"{path}.c", "-lm"], check=True)
        self._code[name] = ctypes.CDLL(f"{path}.so")
        self.driver.emulator_kernel(name.encode(), self._code[name].run)

    def log(self, on: bool = True) -> None:
        """Begin a new log of what the driver is asked to do, or end it."""
        self.driver.emulator_log(int(on))

    def logged(self) -> list[str]:
        """The lines of the log."""
        return self.driver.emulator_logged().decode().splitlines()

    def limit_memory(self, size: int = 1 << 33) -> None:
        """Let the GPU have `size` bytes of memory."""
        self.driver.emulator_memory(size)

    def memory_in_use(self) -> int:
        """Bytes of memory that are allocated."""
        return self.driver.emulator_memory_in_use()

    def damage(self) -> int:
        """How many bytes beside pieces of device memory were written to."""
        return self.driver.emulator_damage()


class Array:
    """An array of some library on the GPU, which speaks CUDA's array interface."""

    def __init__(self, array: np.ndarray, **fields: Any) -> None:
        self.array = array
        self._fields = fields

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        array = self.array
        return {
            "version": 3,
            "shape": array.shape,
            "strides": None if array.flags.c_contiguous else array.strides,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            **self._fields,
        }
