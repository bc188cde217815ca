"""What the CUDA backend does beside its results, on the emulated GPU: a program that prints what went wrong as JSON.

Usage: ``python -m tests.emulated_gpu.checks FOLDER``. Each check is a function here whose name begins with ``check_``.
"""

import gc
import json
import os
import sys
import traceback
from typing import Any

import numpy as np
from numba import cuda

import detops
from tests.emulated_gpu.machine import Array, Machine
from tests.support import calls

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def _refusal(call: Any) -> str:
    """The kind and the text of the error that a call raises."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def _equal(got: Any, wanted: Any) -> None:
    assert got == wanted, f"got {got!r}, wanted {wanted!r}"


def _settled(machine: Machine) -> int:
    """Bytes in use once all that waits to be freed is."""
    gc.collect()
    cuda.current_context().deallocations.clear()
    return machine.memory_in_use()


def _refused_for_memory(machine: Machine, operator: str) -> int:
    """Call an operator with more and more memory, until it has enough; return how often it had not."""
    case, room, refused = calls.ordinary(operator), 0, 0
    while True:
        machine.limit_memory(room)
        error = _refusal(lambda: calls.call(case, backend="cuda"))
        machine.limit_memory()
        if error == "no error":
            return refused
        _equal(error, "MemoryError: the GPU has no memory left for an array")
        refused += 1
        room = 2 * room + 64


def check_no_memory_left(machine: Machine) -> None:
    """Every operator, at its allocations: a MemoryError, of which nothing stays allocated."""
    for operator in calls.ALL:
        assert _refused_for_memory(machine, operator) > 1, operator
        before = _settled(machine)  # Numba itself holds on to the arguments of its last launch
        _refused_for_memory(machine, operator)
        _equal((operator, _settled(machine)), (operator, before))


def check_an_array_of_another_gpu(machine: Machine) -> None:
    with cuda.gpus[1]:
        there = cuda.to_device(X)
    _equal(
        _refusal(lambda: detops.cummax(there)),
        "ValueError: x: expected an array on GPU 0, the current one, got one on GPU 1",
    )
    with cuda.gpus[1]:
        values = detops.cummax(there).values
        np.testing.assert_array_equal(values.copy_to_host(), X)


def check_an_array_that_is_not_aligned(machine: Machine) -> None:
    memory = np.zeros(X.nbytes + 1, np.uint8)
    error = _refusal(lambda: detops.cummax(Array(memory[1:].view(np.float32).reshape(X.shape))))
    assert error.startswith("ValueError: x: expected an aligned array, got one of float32 at address 0x"), error


def check_out_that_is_read_only(machine: Machine) -> None:
    boxes = calls.ordinary("encode_bbox").cast("float32")
    given = {name: Array(array) for name, array in boxes.items()}
    memory = np.full_like(boxes["boxes"], 7)
    out = Array(memory, data=(memory.ctypes.data, True))
    _equal(
        _refusal(lambda: detops.encode_bbox(**given, out=out)),
        "ValueError: out: expected a C-contiguous and writable array, got one that is not",
    )
    assert (memory == 7).all()


def check_a_stream_is_waited_for(machine: Machine) -> None:
    """Numba waits for the stream that an array names; no copy to the host follows that would not wait itself."""
    stream = cuda.stream()
    case = calls.ordinary("nms").cast("float32")
    named = {name: Array(array, stream=int(stream.handle)) for name, array in case.items()}
    machine.log()
    detops.nms(**named, iou_threshold=0.4)
    lines = machine.logged()
    machine.log(False)
    assert any(line.startswith("synchronize stream") for line in lines), lines
    to_host = [line for line in lines if line.startswith("copy to host")]
    assert to_host, lines
    assert all(line.endswith("blocking") or "stream (nil)" in line for line in to_host), to_host


def check_in_place(machine: Machine) -> None:
    """Where `out` is `data`, no second array of its size is made."""
    memory = np.zeros((4096, 4), np.float32)
    data = Array(memory)
    indices, updates = Array(np.array([[1], [4095]])), Array(np.ones((2, 4), np.float32))
    machine.log()
    result = detops.scatter_nd(data, indices, updates, out=data)
    lines = machine.logged()
    machine.log(False)
    assert result is data
    _equal(memory.sum(axis=1).nonzero()[0].tolist(), [1, 4095])
    sizes = [int(line.split()[1]) for line in lines if line.startswith("allocate")]
    assert max(sizes, default=0) < memory.nbytes, lines


def main() -> None:
    """Run all checks."""
    machine = Machine(sys.argv[1])
    assert os.environ["NUMBA_ENABLE_CUDASIM"] == "0"
    machine.driver.emulator_devices(2)
    found = {}
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            try:
                check(machine)
                found[name] = ""
            except Exception:
                found[name] = traceback.format_exc()[-2000:]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
