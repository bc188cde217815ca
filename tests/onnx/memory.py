"""How much a process grows while sessions run over and over; as a script, over 100,000 runs."""

import resource
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import parser

import detops.onnx

# float16 takes scratch memory, and each second run fails.
MODEL = """<ir_version: 8, opset_import: ["": 17, "mmcv": 1]>
agraph (float16[N, C, H, W] x, float16[K, 5] r) => (float16[K, C, 2, 2] y) {
    y = mmcv.MMCVRoiAlign <output_height = 2, output_width = 2, aligned = 1> (x, r)
}"""


def resident() -> int:
    """Bytes of memory that the process holds."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def growth(runs: int, blocks: int) -> list[int]:
    """Bytes that each block of so many runs adds, half of them with an error, and a registration for every 200.

    An allocator takes its time to settle, so single blocks may grow; a leak shows in all of them.
    """
    proto = parser.parse_model(MODEL)
    x, rois = np.ones((1, 8, 16, 16), np.float16), np.array([[0, 0, 0, 9, 9]] * 8, np.float16)
    bad = rois + np.float16(7)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = detops.onnx.session(proto, sess_options=options)
    run_options = onnxruntime.RunOptions()
    run_options.log_severity_level = 4

    def work(count: int) -> None:
        for number in range(count):
            try:
                session.run(None, {"x": x, "r": bad if number % 2 else rois}, run_options)
            except Exception as error:
                if "batch indices" not in str(error):
                    raise
            if number % 200 == 0:
                detops.onnx.session(proto)

    work(1000)
    found = []
    for _ in range(blocks):
        before = resident()
        work(runs)
        found.append(resident() - before)
    return found


if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 25_000
    print(f"bytes for each of 4 blocks of {runs} runs: {growth(runs, 4)}")
