"""``_core`` keeps to the subset that Python, Cython, Numba and CUDA read alike, and the checker can say no."""

import pytest

from detops import _core
from detops._core import scalar
from tests.support.core_subset import DECLARED, SCALAR_PXI, core_sources, faults, signatures

HEAD = "import cython\nif not cython.compiled:\n    from detops._core.scalar import exp, real, typed\n\n"
DECORATED = "@cython.cfunc\n@cython.inline\n@cython.nogil\n@cython.exceptval(check=False)\n"
GOOD = 'def f(x: real, n: cython.Py_ssize_t) -> real:\n    """Doc."""\n'


def core_file(body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return HEAD + DECORATED + GOOD + lines


@pytest.mark.parametrize("module", _core.MODULES)
def test_core_file_keeps_to_the_subset(module: str) -> None:
    sources = core_sources()
    assert faults(sources[module], signatures(sources)) == []


def test_scalar_functions_have_c_names() -> None:
    """What ``scalar.py`` says in Python, ``scalar.pxi`` says in C."""
    declared = {name for _, name, _ in DECLARED.findall(SCALAR_PXI.read_text())}
    missing = set(_core.defined(scalar)) - declared
    assert missing == set()


@pytest.mark.parametrize(
    "body",
    [
        "return x * typed(n, x) + typed(-0.5, x)",
        "y: real\nlow: cython.Py_ssize_t = int(x)\ny = typed(low, x)\nlow -= 1\nreturn y if low & 1 else x",
        "return typed(min(n, 3), x)",
        "if n and not x > typed(0, x):\n    return -x\nreturn exp(x)",
        "ready: cython.bint = n > 0 or x != x\nreturn x if ready else f(x, n)",
    ],
)
def test_the_subset_is_accepted(body: str) -> None:
    assert faults(core_file(body)) == []


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("return x * 0.5", "bare float constant"),
        ("return x * 2", "real meets index"),
        ("return x + typed(1, x) * n", "real meets index"),
        ("return typed(1, n)", "typed() like index"),
        ("return n", "index where real is meant"),
        ("return x, x", "('real', 'real') where real is meant"),
        ("y = x\nreturn y", "y is not an annotated local variable"),
        ("y: float = x\nreturn y", "needs an annotation"),
        ("y += x\nreturn x", "y is not an annotated local variable"),
        ("a: real\na, b = x, x\nreturn a", "b is not an annotated local variable"),
        ("return x // x", "no FloorDiv"),
        ("return typed(n % 2, x)", "no Mod"),
        ("return x ** typed(2, x)", "no Pow"),
        ("return typed(n / 2, x)", "whole / whole is float64"),
        ("return x & x", "no BitAnd on real"),
        ("return min(x, x)", "no min() on real"),
        ("return max(x, x)", "no max() on real"),
        ("return abs(x)", "no abs() on real"),
        ("return math.floor(x)", "no Call expression: math.floor"),
        ("return floor(x)", "floor is no function of the core"),
        ("return exp(n)", "index where real is meant"),
        ("return exp(x, x)", "exp takes 1 arguments"),
        ("return x if x else -x", "a condition is a comparison"),
        ("return x if x > 0 else -x", "index where real is meant"),
        ("return x if n else 0", "index where real is meant"),
        ("for i in range(n):\n    x += x\nreturn x", "no loops"),
        ("while n:\n    n -= 1\nreturn x", "no loops"),
        ("assert n\nreturn x", "no Assert statement"),
        ("return x[0]", "no Subscript expression"),
        ("return [x][0]", "no Subscript expression"),
        ("\n" * 25 + "return x", "more than 25 lines"),
    ],
)
def test_what_is_outside_is_named(body: str, fault: str) -> None:
    assert any(fault in line for line in faults(core_file(body))), faults(core_file(body))


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("# Encoding: of boxes.\n" + core_file("return x"), "coding declaration"),
        ("from __future__ import annotations\n" + core_file("return x"), "no 'from __future__'"),
        ("import math\n" + core_file("return x"), "imports and functions, nothing else"),
        ("HALF = 0.5\n" + core_file("return x"), "imports and functions, nothing else"),
        (core_file("return x").replace("@cython.nogil\n", ""), "the decorators of f"),
        (core_file("return x").replace("(check=False)", "(check=True)"), "the decorators of f"),
        (core_file("return x").replace("x: real", "x"), "needs an annotation"),
        (core_file("return x").replace(" -> real", ""), "needs an annotation"),
        (core_file("return x").replace("real)", "float)").replace("n: ", "n: list"), "needs an annotation"),
        (core_file("return x").replace("n: cython.Py_ssize_t", "n: cython.Py_ssize_t = 1"), "plain arguments"),
        (core_file("return x").replace("n: cython", "*, n: cython"), "plain arguments"),
        (core_file("return x").replace('    """Doc."""\n', ""), "has no docstring"),
    ],
)
def test_what_is_wrong_around_a_body_is_named(source: str, fault: str) -> None:
    assert any(fault in line for line in faults(source)), faults(source)
