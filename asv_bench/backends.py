"""Measure Numba's kernels and the compiled ones in turn, on the workloads of peers.py, and print ratios.

    python -m asv_bench.backends [--only TEXT] [--seconds S]

One thread, processor time, the best of each side: how many times as long Numba's kernels take.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import detops
from asv_bench.peers import limit_threads, rows

BACKENDS = ("cython", "numba")


def least_times(call: Callable[[], Any], seconds: float) -> dict[str, float]:
    """The least processor time of a call on each backend; each is measured for about so long, and twice at least."""
    best = dict.fromkeys(BACKENDS, float("inf"))
    spent = dict.fromkeys(BACKENDS, 0.0)
    for backend in BACKENDS:
        # Numba compiles.
        with detops.use_backend(backend):
            call()
    rounds = 0
    while rounds < 2 or min(spent.values()) < seconds:
        for backend in BACKENDS:
            with detops.use_backend(backend):
                start = time.process_time()
                call()
                took = time.process_time() - start
            best[backend] = min(best[backend], took)
            spent[backend] += took
        rounds += 1
    return best


def main(arguments: list[str] | None = None) -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    parser.add_argument("--seconds", type=float, default=0.5, help="processor time for a side (default: 0.5)")
    options = parser.parse_args(arguments)
    limit_threads(1)
    print("| workload | Numba over Cython |\n| --- | --- |")
    seen = set()
    for row in rows():
        if options.only in row.name and row.name not in seen:
            seen.add(row.name)
            best = least_times(row.ours, options.seconds)
            print(f"| {row.name} | {best['numba'] / best['cython']:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
