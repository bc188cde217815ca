"""Normal forms: what is equal as arithmetic on real numbers is equal as a form, and nothing else is."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detops.graph._finding import Refusal
from detops.graph.symbols import _poly
from detops.graph.symbols._expressions import Pool
from detops.graph.symbols._poly import Poly

from .differential import evaluated

X, Y, Z = ((((("x", slot),), Fraction(1)),) for slot in range(3))


def number(value: float) -> Poly:
    return _poly.constant_poly(Fraction(value))


def test_arithmetic_is_exact() -> None:
    tenth = number(float(np.float32(0.1)))
    assert _poly.multiply(X, tenth) != _poly.divide(X, number(10))
    assert _poly.divide(X, number(10)) == ((X[0][0], Fraction(1, 10)),)
    assert _poly.subtract(X, X) == _poly.ZERO
    assert _poly.multiply(_poly.add(X, Y), _poly.subtract(X, Y)) == _poly.subtract(
        _poly.multiply(X, X), _poly.multiply(Y, Y)
    )


def test_bounds_have_one_form() -> None:
    def low(poly: Poly, bound: float) -> Poly:
        return _poly.maximum(poly, number(bound))

    def high(poly: Poly, bound: float) -> Poly:
        return _poly.minimum(number(bound), poly)

    assert high(high(X, 3), 2) == high(X, 2)
    assert high(low(X, -1), 2) == low(high(X, 2), -1)
    assert low(high(X, 2), 2) == high(low(X, 2), 2)
    assert high(low(X, 3), 2) == number(2)
    assert low(high(X, 2), 3) == number(3)
    assert high(number(5), 2) == number(2)
    assert high(X, 2) != low(X, 2)
    assert high(_poly.multiply(X, number(2)), 4) != _poly.multiply(high(X, 2), number(2))


def test_what_no_decode_has_is_refused() -> None:
    for make in (
        lambda: _poly.divide(X, Y),
        lambda: _poly.divide(X, _poly.ZERO),
        lambda: _poly.minimum(X, Y),
        lambda: _poly.maximum(_poly.exp(X), Y),
    ):
        with pytest.raises(Refusal):
            make()


@given(st.lists(st.tuples(st.sampled_from("+-*en"), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=6))
def test_pool_agrees_with_numbers(steps: list[tuple[str, int, int]]) -> None:
    """Build a random expression of arrays, and evaluate its forms at the numbers that stand for the symbols."""
    pool = Pool()
    shape = (2, 3)
    tensors = [pool.symbols(shape), pool.symbols((3,)), pool.constants(np.array([[0.5], [-2.0]])), pool.symbols((2, 1))]
    symbols = np.random.default_rng(0).uniform(-0.4, 0.4, 11)
    values = [symbols[:6].reshape(shape), symbols[6:9], np.array([[0.5], [-2.0]]), symbols[9:].reshape(2, 1)]
    functions = {"+": (_poly.add, np.add), "-": (_poly.subtract, np.subtract), "*": (_poly.multiply, np.multiply)}
    for op, left, right in steps:
        try:
            if op == "e":
                made, value = pool.unary(_poly.exp, tensors[left]), np.exp(values[left])
            elif op == "n":
                half = number(0.25)
                made = pool.unary(lambda poly, half=half: _poly.minimum(poly, half), tensors[left])
                value = np.minimum(values[left], 0.25)
            else:
                made = pool.binary(functions[op][0], tensors[left], tensors[right])
                value = functions[op][1](values[left], values[right])
        except Refusal:
            return  # too many symbols or terms
        tensors[left], values[left] = made, value
    for tensor, value in zip(tensors, values, strict=True):
        assert tensor.shape == value.shape
        for element, wanted in zip(tensor.ravel(), value.ravel(), strict=True):
            poly, slots = pool.element(int(element))
            assert evaluated(poly, [symbols[slot] for slot in slots]) == pytest.approx(wanted, rel=1e-9, abs=1e-9)
            assert sorted(_poly.used_slots(poly)) == list(range(len(slots)))
            assert slots == sorted(set(slots))


def test_equal_forms_of_other_symbols_are_not_the_same() -> None:
    pool = Pool()
    tensor = pool.symbols((4,))
    doubled = pool.binary(_poly.add, tensor, tensor)
    assert pool.same(doubled, pool.unary(lambda poly: _poly.multiply(poly, number(2)), tensor)).all()
    assert not pool.same(doubled, doubled[::-1]).any()
    assert not pool.same(doubled, tensor).any()
    crossed = pool.binary(_poly.multiply, tensor, tensor[::-1])
    assert pool.same(crossed, crossed[::-1]).all()  # x0 * x3 is x3 * x0


def test_symbols_that_cancel_are_forgotten() -> None:
    pool = Pool()
    left, right = pool.symbols((3,)), pool.symbols((3,))
    total = pool.binary(_poly.add, left, right)
    assert pool.same(pool.binary(_poly.subtract, total, right), left).all()


def test_infinite_constants_are_refused() -> None:
    for value in (np.inf, np.nan):
        with pytest.raises(Refusal):
            Pool().constants(np.array([1.0, value]))
