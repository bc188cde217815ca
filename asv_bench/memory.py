"""How much memory detops and the peers that are installed take at most, beside their inputs (Linux).

    python -m asv_bench.memory [--only TEXT] [--threads N]

Each side runs two calls in a process of its own, forked once the inputs are there. What is printed is by how much the
process grew at its peak, in MiB: results, scratch memory, copies, sessions, and what a library keeps for later.
"""

import argparse
import contextlib
import ctypes
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from asv_bench.peer import Row
from asv_bench.peers import limit_threads, rows

MIB = 1 << 20
# Imported before anything is measured.
LIBRARIES = ("onnx", "onnxruntime", "cv2", "powerboxes", "ensemble_boxes", "detops.operators")


def grown(call: Callable[[], Any], threads: int) -> tuple[float, float] | str:
    """By how many MiB a process grows at most in two calls, and the size of a result; or why there is no number."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reads)
        with open(writes, "w", encoding="utf-8") as answer:
            try:
                answer.write("{} {}".format(*_grown_here(call, threads)))
            except Exception as error:
                answer.write(f"! {error!r}")
        os._exit(0)
    os.close(writes)
    with open(reads, encoding="utf-8") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    if text.startswith("!") or not text:
        return text.removeprefix("! ") or "the process ended"
    peak, result = map(float, text.split())
    return peak, result


def _grown_here(call: Callable[[], Any], threads: int) -> tuple[float, float]:
    limit_threads(threads)
    for library in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    # Memory that the inputs' makers have freed would be taken without a trace.
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what is there now
    before = _status("VmRSS")
    size = _size(call())
    call()
    return _status("VmHWM") - before, size


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024 / MIB


def _size(result: Any) -> float:
    arrays = result if isinstance(result, tuple | list) else [result]
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray)) / MIB


def lines(wanted: Iterator[Row], threads: int) -> Iterator[tuple[str, str, str, str]]:
    """Workload, side, growth and size of the result."""
    for row in wanted:
        for side, call in {"detops": row.ours, **row.peers}.items():
            found = grown(call, threads)
            if isinstance(found, str):
                print(f"{row.name}: {side} is left out ({found})", file=sys.stderr)
            else:
                yield row.name, side, f"{found[0]:.0f}", f"{found[1]:.0f}"


def main(arguments: list[str] | None = None) -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    parser.add_argument("--threads", type=int, default=2, help="threads of detops and of each peer (default: 2)")
    options = parser.parse_args(arguments)
    print("| workload | library | MiB at most | of the result |\n| --- | --- | --- | --- |")
    for cells in lines((row for row in rows() if options.only in row.name), options.threads):
        print(f"| {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
