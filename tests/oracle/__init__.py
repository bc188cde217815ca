"""Oracles: what each operator means, as naive float64 code written from the specification.

An oracle takes the arguments of the public function and returns float64 (or integer) arrays. It shares nothing with
the library: no import of detops stands below this folder.
"""

import importlib
import pkgutil
from collections.abc import Callable


def oracle(operator: str) -> Callable:
    """Return the oracle of an operator by its public name."""
    for module in pkgutil.iter_modules(__path__):
        found = getattr(importlib.import_module(f"{__name__}.{module.name}"), operator, None)
        if found is not None:
            return found
    raise LookupError(f"no oracle of {operator}")
