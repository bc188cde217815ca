"""Measure detops and the peers that are installed, in turn, in one run, and print ratios.

    python asv_bench/peers.py [--only TEXT] [--threads N] [--json]

A ratio is how many times as long the peer takes. Seconds are not printed: they say more about the machine.
"""

import argparse
import contextlib
import dataclasses
import importlib
import json
import os
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import detops
from asv_bench import peer_rows
from asv_bench.peer import Ratio, Row, measure


def rows() -> Iterator[Row]:
    """All rows, made one after the other."""
    for found in sorted(pkgutil.iter_modules(peer_rows.__path__), key=lambda module: module.name):
        module = importlib.import_module(f"{peer_rows.__name__}.{found.name}")
        yield from module.rows() if hasattr(module, "rows") else module.ROWS


def limit_threads(threads: int) -> None:
    """Set the number of threads of detops and of each peer. onnxruntime's sessions ask detops for the number."""
    detops.set_num_threads(threads)
    with contextlib.suppress(ImportError):
        import cv2

        cv2.setNumThreads(threads)
    with contextlib.suppress(ImportError):
        import torch

        torch.set_num_threads(threads)


def describe(ratio: Ratio) -> tuple[str, str, str, str]:
    """Return the cells of a table's line."""
    target = "" if ratio.target is None else f"{ratio.target:g}x {'met' if ratio.met else 'MISSED'}"
    return ratio.row, ratio.peer, f"{ratio.median:.2f}x ({ratio.low:.2f} to {ratio.high:.2f})", target


def show(ratios: list[Ratio]) -> None:
    """Print a table, with rich where it is installed."""
    head = ("workload", "peer", "times as fast (quartiles)", "target")
    lines = [describe(ratio) for ratio in ratios]
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
        for line in (head, *lines):
            print("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())
        return
    table = Table(*head)
    for line in lines:
        table.add_row(*line, style="red" if line[3].endswith("MISSED") else None)
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    parser.add_argument("--threads", type=int, default=2, help="threads of detops and of each peer (default: 2)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    limit_threads(options.threads)
    ratios: list[Ratio] = []
    for row in rows():
        if options.only in row.name:
            print(f"measuring {row.name}", file=sys.stderr)
            ratios += measure(row, missing=lambda line: print(line, file=sys.stderr))
    if options.json:
        print(json.dumps([dataclasses.asdict(ratio) for ratio in ratios], indent=1))
    else:
        show(ratios)
        print(f"{options.threads} threads of {os.cpu_count()} processors; detops uses {instruction_set()}")
    return 0


def instruction_set() -> str:
    """Return the instruction set that the compiled kernels use."""
    from detops._config import config

    return config().get("instruction set", "no compiled kernels")


if __name__ == "__main__":
    sys.exit(main())
