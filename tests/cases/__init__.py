"""Cases: inputs and options of an operator that know no backend, dtype or memory layout.

A module per operator family defines ``CASES``, a list of :class:`Case`. Floats are given as float64 arrays; the
conformance body casts them to the dtype under test and asks the oracle about the numbers as they then are. ``ORDINARY``
makes an ordinary call of each operator, for tests of what all have in common: (rng, size) -> Case, with results that
grow with size.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
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


def boxes_of(rng: np.random.Generator, count: int, extent: float = 200.0) -> np.ndarray:
    """Boxes (x1, y1, x2, y2) of ordinary size."""
    low = rng.uniform(0, extent, (count, 2))
    return np.concatenate([low, low + rng.uniform(4, 40, (count, 2))], axis=1)


def rotated_boxes_of(rng: np.random.Generator, count: int, extent: float = 200.0) -> np.ndarray:
    """Boxes (center_x, center_y, width, height, angle) of ordinary size, turned in any direction."""
    sizes = rng.uniform(4, 40, (count, 2))
    return np.concatenate([rng.uniform(0, extent, (count, 2)), sizes, rng.uniform(-np.pi, np.pi, (count, 1))], axis=1)


Maker = Callable[[np.random.Generator, int], Case]


def _modules() -> Iterator[ModuleType]:
    for module in pkgutil.iter_modules(__path__):
        yield importlib.import_module(f"{__name__}.{module.name}")


def all_cases() -> list[Case]:
    """All cases of all operators."""
    return [case for module in _modules() for case in module.CASES]


def makers() -> dict[str, Maker]:
    """What makes an ordinary call, by operator."""
    return {operator: maker for module in _modules() for operator, maker in module.ORDINARY.items()}
