"""Plain Python, Numba, Cython and the CUDA simulator give one answer, to the bit, for every function of the core."""

import ast
from types import ModuleType

import numpy as np
import pytest

from detops import _core
from tests.support import core_builds
from tests.support.core_builds import ELEMENTS, SIGNATURES, Columns, OutOfDomain, results_of
from tests.support.core_subset import Signature, core_sources

COUNT = 400
# Correctly rounded nowhere: each library has its own last bit.
APPROXIMATE = {"atan", "exp", "log"}


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], ModuleType]:
    return core_builds.compile_cython(tmp_path_factory.mktemp("core"))


def calls(name: str) -> set[str]:
    """Names that a core function calls, directly or through others."""
    nodes = {
        node.name: node
        for source in core_sources().values()
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
    }
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for node in ast.walk(nodes[waiting.pop()]):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in found:
                found.add(node.func.id)
                waiting += [node.func.id] if node.func.id in nodes else []
    return found


def reals(rng: np.random.Generator, style: int, count: int, dtype: str) -> np.ndarray:
    """Numbers of one style: small halves, ordinary, of any magnitude, or odd."""
    limits = np.finfo(dtype)
    odd = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, limits.max, -limits.max, limits.tiny, -limits.tiny]
    odd += [limits.smallest_subnormal, 2**24 + 1, 1e9, -1e9, 2**31, -(2**31), 2**53 + 1, 2.0**62, -(2.0**62), 2.0**63]
    top = np.log10(float(limits.max))
    with np.errstate(over="ignore"):
        return np.array(
            [
                rng.integers(-8, 9, count) / 2,
                rng.normal(0, 3, count),
                rng.choice([-1, 1], count) * 10 ** rng.uniform(-top, top, count),
                rng.choice(odd, count),
            ][style]
        ).astype(dtype)


def arguments_of(signature: Signature, dtype: str) -> Columns:
    """Columns of arguments: a quarter of each style, and as many again where each argument has its own."""
    rng = np.random.default_rng(20)
    found: Columns = []
    for kind in signature.arguments:
        if kind in ("real", "element"):
            alike = [reals(rng, style, COUNT // 4, dtype) for style in range(4)]
            mixed = rng.permutation(np.concatenate([reals(rng, style, COUNT // 4, dtype) for style in range(4)]))
            found.append(np.concatenate([*alike, mixed]))
        elif kind == "index":
            usual = rng.integers(0, 9, COUNT)
            found.append(np.concatenate([usual, rng.choice([-3, -1, 0, 1, 7, 2**24 + 1, 2**31 - 1], COUNT)]))
        else:
            found.append(rng.integers(0, 2, 2 * COUNT).astype(bool))
    return found


def plain_results(name: str, dtype: str) -> tuple[Columns, Columns, int]:
    """Arguments within the function's domain, its results in plain Python, and how many arguments were outside."""
    signature = SIGNATURES[name]
    function = core_builds.plain_functions()[name]
    arguments = arguments_of(signature, dtype)
    rows, inside = [], []
    with np.errstate(all="ignore"):
        for i, row in enumerate(core_builds.scalars(signature, arguments)):
            try:
                result = function(*row)
            except OutOfDomain:
                continue
            for kind, value in zip(
                results_of(signature), result if isinstance(result, tuple) else (result,), strict=True
            ):
                assert kind != "real" or type(value) is np.dtype(dtype).type, f"{name} gives {type(value)}"
            rows.append(result)
            inside.append(i)
    outside = len(arguments[0]) - len(inside)
    return [column[inside] for column in arguments], core_builds.columns(signature, rows, dtype), outside


def agree(name: str, got: Columns, wanted: Columns, arguments: Columns, what: str) -> None:
    """Compare to the bit; NaN is NaN, whatever its bits."""
    largest = np.zeros(len(wanted[0]))
    for column in wanted:
        if column.dtype.kind == "f":
            largest = np.fmax(largest, np.where(np.isfinite(column), np.abs(column.astype(np.float64)), 0))
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype == other.dtype
        same = one == other
        if one.dtype.kind == "f":
            same &= np.signbit(one) == np.signbit(other)
            same |= np.isnan(one) & np.isnan(other)
            if calls(name) & APPROXIMATE:
                with np.errstate(all="ignore"):
                    near = np.abs(one.astype(np.float64) - other) <= 8 * np.finfo(one.dtype).eps * largest
                same |= near & np.isfinite(other)
        if not same.all():
            at = int(np.flatnonzero(~same)[0])
            raise AssertionError(
                f"{what}: {name}{tuple(column[at] for column in arguments)} is {one[at]!r}, "
                f"plain Python says {other[at]!r}"
            )


@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("name", SIGNATURES)
def test_compilers_agree(name: str, dtype: str, modules: dict[tuple[str, bool], ModuleType]) -> None:
    arguments, wanted, outside = plain_results(name, dtype)
    assert len(arguments[0]) >= 100
    if outside:
        text = " ".join(str(_core.functions()[name].__doc__).split())
        assert "must be" in text, f"{name} does not take every number, and its docstring does not say which must be"
    builds = {
        "numba": core_builds.numba_build(dtype),
        "simulator": core_builds.simulator_build(dtype),
        "cython": core_builds.cython_build(modules[dtype, False], dtype),
        "cython with fma": core_builds.cython_build(modules[dtype, True], dtype),
    }
    for what, build in builds.items():
        with np.errstate(all="ignore"):
            agree(name, build(name, arguments), wanted, arguments, what)


def test_the_comparison_can_fail() -> None:
    wanted = [np.array([0.0, 1.0, np.nan], np.float32), np.array([1, 2, 3])]
    fine = [np.array([0.0, 1.0, -np.nan], np.float32), np.array([1, 2, 3])]
    agree("blend", fine, wanted, fine, "numba")
    for at, value in ((0, -0.0), (1, np.nextafter(np.float32(1), np.float32(2))), (2, 0.0)):
        wrong = [column.copy() for column in fine]
        wrong[0][at] = value
        with pytest.raises(AssertionError, match="plain Python says"):
            agree("blend", wrong, wanted, wrong, "numba")
    with pytest.raises(AssertionError, match="plain Python says"):
        agree("blend", [fine[0], np.array([1, 2, 4])], wanted, fine, "numba")
