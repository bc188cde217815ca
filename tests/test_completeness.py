"""Everything that docs/add_an_operator.md asks for is there, for every operator."""

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import numpy as np
import pytest

import detops
import detops.numba
import detops.testing
from asv_bench import benchmarks
from asv_bench.benchmarks.common import Operator
from detops import _registry
from detops._specification import KERNELS, OPERATORS
from docs import make_tables
from tests import calls
from tests.cases import all_cases
from tests.oracle import oracle

ROOT = Path(__file__).parents[1]
SETTINGS = {"__version__", "get_num_threads", "set_num_threads", "show_config", "use_backend"}
UNTYPED = np.dtype(np.float32)


def test_all_public_functions_are_known() -> None:
    assert set(detops.__all__) - SETTINGS == set(OPERATORS)


@pytest.mark.parametrize("backend", _registry.BACKENDS)
@pytest.mark.parametrize("operator", calls.ALL)
def test_every_backend_has_the_kernels(operator: str, backend: str) -> None:
    for name in OPERATORS[operator].kernels:
        assert callable(_registry.kernel(name, backend, UNTYPED))
    assert make_tables.has_kernels(operator, backend)


@pytest.mark.parametrize("module", sorted({kernel.module for kernel in KERNELS.values()}))
def test_compiled_kernels_have_stubs(module: str) -> None:
    kernels = [name for name, kernel in KERNELS.items() if kernel.module == module]
    compiled = _registry.compiled(kernels[0], UNTYPED)
    stub = ast.parse((ROOT / f"src/detops/_cython/stubs/{module}.pyi").read_text())
    described = {part.name: part for part in stub.body if isinstance(part, ast.FunctionDef)}
    assert sorted(described) == sorted(kernels)
    for name, function in described.items():
        wanted = list(inspect.signature(getattr(compiled, name)).parameters)
        assert [argument.arg for argument in function.args.args] == wanted


@pytest.mark.parametrize("operator", calls.ALL)
def test_oracle_and_cases(operator: str) -> None:
    assert callable(oracle(operator))
    cases = [case for case in all_cases() if case.operator == operator]
    assert len(cases) >= 5
    assert len({case.name for case in cases}) == len(cases), "two cases have one name"
    assert any(0 in np.shape(array) for case in cases for array in case.arrays.values()), "no case without elements"


@pytest.mark.parametrize("operator", calls.ALL)
def test_numba_operator(operator: str) -> None:
    assert operator in detops.numba.__all__


@pytest.mark.parametrize("operator", calls.ALL)
def test_docs_page(operator: str) -> None:
    assert (ROOT / "docs" / "operators" / make_tables.page_of(operator)).exists()


def test_benchmarks() -> None:
    measured = set()
    for module in pkgutil.iter_modules(benchmarks.__path__):
        for value in vars(importlib.import_module(f"{benchmarks.__name__}.{module.name}")).values():
            if isinstance(value, type) and issubclass(value, Operator) and value is not Operator:
                measured.add(value.operator)
    assert measured == set(OPERATORS)


def test_strategies() -> None:
    assert set(OPERATORS) <= set(detops.testing.STRATEGIES)


@pytest.mark.parametrize("page", make_tables.TABLES)
def test_tables_are_up_to_date(page: str) -> None:
    written = (ROOT / page).read_text(encoding="utf-8")
    assert make_tables.with_tables(page) == written, "run python docs/make_tables.py"
