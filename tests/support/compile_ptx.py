"""Compile kernels to PTX without a GPU. A script: it reads launches as JSON, and writes PTX as JSON.

It needs a process of its own, in which Numba's simulator is off.
"""

import importlib
import json
import sys
import warnings
from types import SimpleNamespace
from typing import Any

from numba import types


def numba_type(described: Any) -> types.Type:
    """The type that ``tests.support.launches.describe`` wrote down."""
    if isinstance(described, str):
        return getattr(types, described)
    kind, *rest = described
    if kind == "array":
        dtype, axes, layout = rest
        return types.Array(getattr(types, dtype), axes, layout)
    return types.BaseTuple.from_types([numba_type(one) for one in rest])


def main() -> None:
    """Compile what standard input names, for each compute capability."""
    # A function that the kernels call asks which device it is compiled for; there is none here.
    from numba.cuda import compile_ptx, dispatcher

    job = json.load(sys.stdin)
    found = []
    for capability in job["capabilities"]:
        dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=tuple(capability))  # noqa: B023
        for module, name, described in job["launches"]:
            kernel = getattr(importlib.import_module(module), name)
            signature = types.void(*map(numba_type, described))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                text, _ = compile_ptx(kernel.py_func, signature, cc=tuple(capability))
            found.append(text)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
