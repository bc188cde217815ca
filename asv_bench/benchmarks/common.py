"""The base of all benchmarks: an operator timed over backend, dtype and size."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

import detops
from detops.runtime._registry import BACKENDS, available


class Benchmark(ABC):
    """Times one public operator on every backend that runs here.

    A subclass names the operator and its sizes, and makes the arguments::

        class Cummax(Benchmark):
            operator = "cummax"
            sizes = {"rows": ((64, 100_000), 1), "columns": ((100_000, 64), 0)}

            def arguments(self, rng, dtype, shape, axis):
                return (rng.standard_normal(shape).astype(dtype), axis), {}
    """

    operator: ClassVar[str]
    # A name: what `arguments` gets.
    sizes: ClassVar[dict[str, tuple[Any, ...]]]
    dtypes: ClassVar[tuple[str, ...]] = ("float16", "float32", "float64")

    param_names: ClassVar[tuple[str, ...]] = ("backend", "dtype", "size")
    params: ClassVar[tuple[tuple[str, ...], ...]]
    call: Callable[[], Any]

    def __init_subclass__(cls) -> None:
        cls.params = (tuple(filter(available, BACKENDS)), cls.dtypes, tuple(cls.sizes))

    @abstractmethod
    def arguments(self, rng: np.random.Generator, dtype: str, *size: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the positional and the keyword arguments of one call."""

    def setup(self, backend: str, dtype: str, size: str) -> None:
        """Make the arguments; one call compiles what is compiled late."""
        arrays, options = self.arguments(np.random.default_rng(0), dtype, *self.sizes[size])
        operator = getattr(detops, self.operator)
        self.call = lambda: operator(*arrays, **options, backend=backend)
        self.call()

    def time_call(self, *_: str) -> None:
        """One call."""
        self.call()
