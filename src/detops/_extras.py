"""Packages that an extra of detops brings."""

import importlib
from typing import Any

# Names of packages whose module has another name.
PACKAGES = {"PIL": "pillow"}


def hint(extra: str) -> str:
    """Say how to install what an extra brings. detops is on no package index: a clone or a wheel is what there is."""
    return f'the extra {extra!r} of detops brings it: in a clone, pip install ".[{extra}]"'


def need(module: str, extra: str, what: str) -> Any:
    """Return an optional module; where it is missing, the error says what needs it and which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        root = module.partition(".")[0]
        raise ImportError(f"{what} needs {PACKAGES.get(root, root)} ({error}); {hint(extra)}") from error
