"""Exact polynomials over slots 0, 1, ..., exp(.) and min/max(., constant), in normal form: equal ones are one tuple."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from detops.graph._finding import Refusal

Poly = tuple[tuple[tuple[Any, ...], Fraction], ...]
"""Sorted (monomial, coefficient) pairs; a monomial is a sorted tuple of atoms.

Atoms are ("x", slot), ("exp", poly), ("min", poly, bound) and ("max", poly, bound).
"""

MAX_TERMS = 64
MAX_ATOMS = 512  # in all terms, with those inside of others
MAX_NESTING = 32
MAX_BITS = 1 << 12  # of a coefficient
ZERO: Poly = ()


def constant_poly(value: Fraction) -> Poly:
    """Return the polynomial of one number."""
    return (((), value),) if value else ZERO


def as_constant(poly: Poly) -> Fraction | None:
    """Return the number that a constant polynomial stands for, else None."""
    if not poly:
        return Fraction(0)
    return poly[0][1] if len(poly) == 1 and poly[0][0] == () else None


def as_atom(poly: Poly, kind: str) -> tuple[Any, ...] | None:
    """Return the atom where the polynomial is one atom of that kind, times one."""
    if len(poly) == 1 and poly[0][1] == 1 and len(poly[0][0]) == 1 and poly[0][0][0][0] == kind:
        return tuple(poly[0][0][0])
    return None


def _collect(terms: dict[tuple[Any, ...], Fraction]) -> Poly:
    kept = tuple(sorted((key, value) for key, value in terms.items() if value))
    if len(kept) > MAX_TERMS:
        raise Refusal("the arithmetic has more terms than a box decode can have")
    if any(value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS for _, value in kept):
        raise Refusal("the arithmetic has larger numbers than a box decode can have")
    return _small(kept)


def _small(poly: Poly) -> Poly:
    """Return a polynomial that is small enough; one that multiplies itself, or bounds itself, again and again isn't."""
    left = MAX_ATOMS
    pending = [(poly, 0)]
    while pending:
        inner, depth = pending.pop()
        left -= sum(len(monomial) for monomial, _ in inner)
        if left < 0 or depth > MAX_NESTING:
            raise Refusal("the arithmetic has longer expressions than a box decode can have")
        pending += [(atom[1], depth + 1) for monomial, _ in inner for atom in monomial if atom[0] != "x"]
    return poly


def add(left: Poly, right: Poly) -> Poly:
    """Return left + right."""
    terms = dict(left)
    for key, value in right:
        terms[key] = terms.get(key, Fraction(0)) + value
    return _collect(terms)


def subtract(left: Poly, right: Poly) -> Poly:
    """Return left - right."""
    return add(left, tuple((key, -value) for key, value in right))


def multiply(left: Poly, right: Poly) -> Poly:
    """Return left * right."""
    terms: dict[tuple[Any, ...], Fraction] = {}
    for key_l, value_l in left:
        for key_r, value_r in right:
            key = tuple(sorted(key_l + key_r))
            terms[key] = terms.get(key, Fraction(0)) + value_l * value_r
    return _collect(terms)


def divide(left: Poly, right: Poly) -> Poly:
    """Return left / right for a constant right."""
    divisor = as_constant(right)
    if divisor is None:
        raise Refusal("a value computed from the inputs is a divisor, which no box decode has")
    if divisor == 0:
        raise Refusal("the arithmetic divides by zero")
    return tuple((key, value / divisor) for key, value in left)


def exp(poly: Poly) -> Poly:
    """Return exp(poly) as an opaque atom."""
    return _small((((("exp", poly),), Fraction(1)),))


def _bound(kind: str, poly: Poly, bound: Fraction) -> Poly:
    pick = min if kind == "min" else max
    number = as_constant(poly)
    if number is not None:
        return constant_poly(pick(number, bound))
    same = as_atom(poly, kind)
    if same is not None:
        return _bound(kind, same[1], pick(same[2], bound))
    other = as_atom(poly, "max" if kind == "min" else "min")
    if other is not None and pick(other[2], bound) == bound and other[2] != bound:
        return constant_poly(bound)
    if other is not None and kind == "max":  # one order for a two-sided clip: the lower bound inside
        return _bound("min", _bound("max", other[1], bound), other[2])
    return _small(((((kind, poly, bound),), Fraction(1)),))


def _bounded(kind: str, left: Poly, right: Poly) -> Poly:
    for value, bound in ((left, right), (right, left)):
        number = as_constant(bound)
        if number is not None:
            return _bound(kind, value, number)
    name = "Minimum" if kind == "min" else "Maximum"
    raise Refusal(f"the bound of a {name} is computed from the inputs, not a constant", depth=2)


def minimum(left: Poly, right: Poly) -> Poly:
    """Return min(left, right) where one of them is constant."""
    return _bounded("min", left, right)


def maximum(left: Poly, right: Poly) -> Poly:
    """Return max(left, right) where one of them is constant."""
    return _bounded("max", left, right)


def used_slots(poly: Poly) -> set[int]:
    """Return the slots that the polynomial reads."""
    found: set[int] = set()
    for monomial, _ in poly:
        for atom in monomial:
            found |= {atom[1]} if atom[0] == "x" else used_slots(atom[1])
    return found


def relabel(poly: Poly, slots: Mapping[int, int] | Sequence[int]) -> Poly:
    """Return the polynomial with its slots renumbered."""
    terms = []
    for monomial, value in poly:
        atoms = (
            ("x", slots[atom[1]]) if atom[0] == "x" else (atom[0], relabel(atom[1], slots), *atom[2:])
            for atom in monomial
        )
        terms.append((tuple(sorted(atoms)), value))
    return tuple(sorted(terms))
