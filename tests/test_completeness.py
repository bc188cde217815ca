"""Everything that docs/add_an_operator.md asks for is there, for every operator."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import detops
import detops.testing
from detops import _core, _specification
from detops._specification import KERNELS, OPERATORS, PLAIN, Kernel, Operator
from detops.runtime import _registry
from docs import layers, make_tables
from tests.support import calls, missing

ROOT = Path(__file__).parents[1]
SETTINGS = {"BackendError", "__version__", "get_num_threads", "set_num_threads", "show_config", "use_backend"}


def test_all_public_functions_are_specified() -> None:
    assert set(detops.__all__) - SETTINGS - set(PLAIN) == set(OPERATORS) == set(calls.ALL)
    assert {kernel for operator in OPERATORS.values() for kernel in operator.kernels} == set(KERNELS)
    for table in (OPERATORS, KERNELS, PLAIN):
        assert list(table) == sorted(table), "keep the table sorted"


def test_no_formula_has_the_name_of_an_operator() -> None:
    """A kernel has the name of its operator, and stands in one C file with the formulas."""
    assert set(_core.functions()) & set(OPERATORS) == set()


@pytest.mark.parametrize("operator", OPERATORS)
def test_nothing_is_missing(operator: str) -> None:
    assert missing.missing(operator) == []


@pytest.mark.parametrize("backend", _registry.BACKENDS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_as_they_are_called(kernel: str, backend: str) -> None:
    dtype = np.dtype(np.float64 if KERNELS[kernel].double else np.float32)
    function = _registry.kernel(kernel, backend, dtype)
    assert tuple(inspect.signature(function).parameters) == KERNELS[kernel].parameters


def test_an_operator_that_is_only_specified_lacks_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    new = Operator((_specification.Array("x"),), (), ("newest",))
    monkeypatch.setitem(OPERATORS, "newest", new)
    monkeypatch.setitem(KERNELS, "newest", Kernel("newest", ("x", "out")))
    places = {line.partition(":")[0] for line in missing.missing("newest")}
    assert places == {
        "src/detops/operators/newest.py",
        "src/detops/numba/newest.py",
        "src/detops/_cython/newest.pyx",
        "src/detops/_numba/newest.py",
        "cuda/kernels/newest.py",
        "src/detops/testing/families.py",
        "tests/oracle/newest.py",
        "tests/cases/newest.py",
        "tests/test_newest.py",
        "CHANGELOG.md",
        "docs/operators/newest.md",
        "asv_bench/benchmarks/newest.py",
        "README.md",
    }
    assert missing.missing("older") == ["src/detops/_specification.py: no operator older in OPERATORS"]


def test_an_option_that_is_only_specified_is_missed_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    old, kernel = OPERATORS["roi_pool"], KERNELS["roi_pool"]
    option = _specification.Option("ceil", "bool", False)
    monkeypatch.setitem(OPERATORS, "roi_pool", Operator((*old.parameters, option), old.results, old.kernels, 3))
    monkeypatch.setitem(KERNELS, "roi_pool", Kernel(kernel.module, (*kernel.parameters, "ceil")))
    lines = missing.missing("roi_pool")
    assert all("ceil" in line for line in lines)
    assert {line.partition(":")[0] for line in lines} == {
        "src/detops/operators/roi_pool.py",
        "src/detops/numba/roi_pool.py",
        "src/detops/_cython/roi_pool.pyx",
        "src/detops/_numba/roi_pool.py",
        "cuda/kernels/roi_pool.py",
    }


@pytest.mark.parametrize("page", make_tables.TABLES)
def test_tables_are_up_to_date(page: str) -> None:
    written = (ROOT / page).read_text(encoding="utf-8")
    assert make_tables.with_tables(page) == written, "run python docs/make_tables.py"


def test_the_guide_names_the_files() -> None:
    guide = (ROOT / "docs" / "add_an_operator.md").read_text(encoding="utf-8")
    for place in re.findall(r'f?"((?:src|cuda|tests|docs|asv_bench)/[^:"]*)', inspect.getsource(missing)):
        if "{}" not in place and "." in place:
            assert place.replace("{operator}", "NAME").partition(":")[0] in guide


def test_no_parts_import_each_other() -> None:
    assert sum(map(len, layers.layers())) == len(layers.imports()) > 10


def test_a_cycle_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = layers.imports() | {"_codes": frozenset({"operators"})}
    monkeypatch.setattr(layers, "imports", lambda: graph)
    with pytest.raises(ValueError, match=r"import each other, got .*_codes.*operators"):
        layers.layers()


def test_folders_can_be_read_from_a_listing() -> None:
    for folder in (ROOT / "src" / "detops" / "graph").rglob("*"):
        if folder.is_dir() and folder.name != "__pycache__":
            assert len([path for path in folder.iterdir() if path.suffix == ".py"]) <= 11, folder
