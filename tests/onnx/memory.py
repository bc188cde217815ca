"""How much a process grows while sessions run, fail and begin over and over; as a script, over many more runs."""

import ctypes
import gc
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import parser

import detops.onnx

# float16 takes scratch memory.
MODEL = """<ir_version: 8, opset_import: ["": 17, "mmcv": 1]>
agraph (float16[N, C, H, W] x, float16[K, 5] r) => (float16[K, C, 2, 2] y) {
    y = mmcv.MMCVRoiAlign <output_height = 2, output_width = 2, aligned = 1> (x, r)
}"""


class _MallInfo(ctypes.Structure):
    _fields_ = [(f"field_{number}", ctypes.c_size_t) for number in range(10)]


def in_use() -> int:
    """Bytes that are allocated; where the C library does not tell them, bytes of memory that the process holds."""
    gc.collect()
    tell = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if tell is not None:
        tell.restype = _MallInfo
        found = tell()
        # hblkhd and uordblks: in mappings of their own, and in the heaps.
        return int(found.field_4 + found.field_7)
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def works() -> dict[str, Callable[[], object]]:
    """What is done over and over."""
    proto = parser.parse_model(MODEL)
    x, rois = np.ones((1, 8, 16, 16), np.float16), np.array([[0, 0, 0, 9, 9]] * 8, np.float16)
    bad = rois + np.float16(7)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = detops.onnx.session(proto, sess_options=options)
    run_options = onnxruntime.RunOptions()
    run_options.log_severity_level = 4

    def run() -> None:
        session.run(None, {"x": x, "r": rois}, run_options)

    def fail() -> None:
        try:
            session.run(None, {"x": x, "r": bad}, run_options)
        except Exception as error:
            if "batch indices" not in str(error):
                raise

    def begin() -> None:
        detops.onnx.session(proto)

    return {"run": run, "fail": fail, "begin": begin}


def growth(work: Callable[[], object], runs: int, blocks: int) -> list[float]:
    """Bytes that each run adds, for each block of `runs` runs.

    An allocator takes its time to settle, so single blocks may grow; a leak shows in all of them.
    """
    for _ in range(runs):
        work()
    found = []
    for _ in range(blocks):
        before = in_use()
        for _ in range(runs):
            work()
        found.append((in_use() - before) / runs)
    return found


if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for name, work in works().items():
        count = runs // 100 if name == "begin" else runs
        print(f"{name}: bytes per run in 4 blocks of {count}: {growth(work, count, 4)}")
