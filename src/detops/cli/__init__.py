"""The command ``detops``. Each part of the library brings its own subcommands; this file only collects them."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from detops._extras import PACKAGES, hint
from detops._version import __version__
from detops.cli._termination import unwinding

# Exit codes: 0 done, 1 the answer is no, 2 bad usage or bad input.
BAD_INPUT = 2

# Modules with a function add_parsers(subparsers). Each sets the default `run`, a function of the parsed arguments that
# returns an exit code, and imports what is heavy or optional only there.
PARTS = ("detops.demo", "detops.cli.run", "detops.cli.models", "detops._config")

# Modules that the extra "cli" brings.
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
        with unwinding():
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
        # An error that users can cause is one line; any other is a fault of ours and keeps its traceback.
        return _say(error)


def _say(what: object) -> int:
    print(f"detops: {' '.join(str(what).split())}", file=sys.stderr)
    return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
