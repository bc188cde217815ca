"""The command ``detops``. Each part of the library brings its own subcommands; this file only collects them."""

import argparse
import importlib
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from detops._extras import PACKAGES, hint
from detops._version import __version__

# Exit codes: 0 done, 1 the answer is no, 2 bad usage or bad input.
BAD_INPUT = 2

# Modules with a function add_parsers(subparsers). Each sets the default `run`, a function of the parsed arguments that
# returns an exit code, and imports what is heavy or optional only there.
PARTS = ("detops.demo", "detops.onnx.cli", "detops.graph.cli", "detops._config")

# What the extra "cli" brings.
OPTIONAL = ("onnx", "onnxruntime", "PIL", "rich", "google")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(
        prog="detops", description="Detection operators for NumPy arrays and for exported models."
    )
    top.add_argument("--version", action="version", version=f"detops {__version__}")
    subparsers = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for part in PARTS:
        importlib.import_module(part).add_parsers(subparsers)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = parser().parse_args(argv)
    try:
        with _termination_unwinds():
            return arguments.run(arguments)
    except KeyboardInterrupt:
        print("detops: interrupted", file=sys.stderr)
        return 130
    except MemoryError as error:
        return _say(f"out of memory ({error})" if str(error) else "out of memory")
    except ModuleNotFoundError as error:
        root = (error.name or "").partition(".")[0]
        return _say(f"the command needs {PACKAGES.get(root, root)}; {hint('cli')}" if root in OPTIONAL else error)
    except (ImportError, OSError, TypeError, ValueError) as error:
        # What users can cause is said in one line; anything else is a fault of ours and keeps its traceback.
        return _say(error)


def _say(what: object) -> int:
    print(f"detops: {' '.join(str(what).split())}", file=sys.stderr)
    return BAD_INPUT


@contextmanager
def _termination_unwinds() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block as an exception does, so that what is unfinished is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: Any) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)  # the first one is enough, and another must not disturb the removal
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # One that is ignored (nohup) stays so, and one that the caller handles is the caller's.
    numbers = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in numbers:
            signal.signal(number, leave)
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main())
