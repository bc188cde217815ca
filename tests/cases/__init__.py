"""Cases: inputs and options of an operator that know no backend, dtype or memory layout.

A module per operator family defines ``CASES``, a list of :class:`Case`. Floats are given as float64 arrays; the
conformance body casts them to the dtype under test and asks the oracle about the numbers as they then are.
"""

import importlib
import pkgutil
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Case:
    """One call of a public operator.

    ``arrays`` are the array arguments by name (None for an absent one), ``options`` all others. Names in ``fixed`` are
    arrays whose dtype is part of the case. ``dtypes`` limits the dtypes under test, ``exact`` asks for equality.
    """

    operator: str
    name: str
    arrays: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ("float16", "float32", "float64")
    exact: bool = False

    def __str__(self) -> str:
        return f"{self.operator}-{self.name}"

    def cast(self, dtype: str) -> dict[str, np.ndarray | None]:
        """Return the arrays with every float in the dtype under test."""
        with np.errstate(over="ignore"):
            return {
                name: value if value is None or name in self.fixed else np.asarray(value).astype(dtype)
                for name, value in self.arrays.items()
            }


def all_cases() -> list[Case]:
    """All cases of all operators."""
    found: list[Case] = []
    for module in pkgutil.iter_modules(__path__):
        found += importlib.import_module(f"{__name__}.{module.name}").CASES
    return found
