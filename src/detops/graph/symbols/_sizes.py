"""Sizes as expressions, so that one proof holds at all sizes.

An axis is a list of factors, the most significant one first. A number is a run of positions that are told apart, one
cell each; an `Atom` is a run of which one position stands for all. (N, 12) flattened is the axis ``(N, 12)``, with
twelve cells; flattened the other way round it would be ``(12, N)``, which has as many elements and another meaning.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from detops.graph._finding import CannotRunError, Refusal
from detops.graph.symbols import _poly
from detops.graph.symbols._poly import Poly

ENDLESS = (1 << 31) - 1  # a Slice up to here, or beyond, means "to the end": no axis is as long
MAX_NUMBER = {4: 1 << 16, 8: 1 << 31}  # what may be added to a size, by the bytes of its type


@dataclass(frozen=True)
class Atom:
    """A run of positions that a proof doesn't tell apart."""

    axis: int  # the axis of box_predictions that it is
    value: int | None  # how long it is, where the model says so
    least: int
    symbol: int  # stands for its length, where the model leaves it open


Factor = int | Atom
Axis = tuple[Factor, ...]


class Question(Refusal):
    """A run cannot go on before more is said of an atom: its positions are told apart, or it may be 1 or not."""

    def __init__(self, atom: Atom, reason: str) -> None:
        super().__init__(reason, depth=3)
        self.atom = atom


def axis_of(factors: Iterable[Factor]) -> Axis:
    """Return an axis in its one form: without ones, and with neighboring numbers multiplied."""
    found: list[Factor] = []
    for factor in factors:
        if isinstance(factor, int) and found and isinstance(found[-1], int):
            found[-1] *= factor
        elif factor != 1:
            found.append(factor)
    return tuple(found)


def check_once(axes: Iterable[Axis], label: str) -> None:
    """Refuse a tensor with an atom twice: its elements are told by one position for each atom."""
    atoms = atoms_in(axes)
    if len(set(atoms)) < len(atoms):
        raise Refusal(f"{label} has an axis as long as another one, which the proof doesn't tell apart", depth=2)


def atoms_in(axes: Iterable[Axis]) -> list[Atom]:
    """Return the atoms of some axes, in their order."""
    return [factor for axis in axes for factor in axis if isinstance(factor, Atom)]


def num_cells(axis: Axis) -> int:
    """Return how many cells an axis has."""
    return math.prod(factor for factor in axis if isinstance(factor, int))


def size_of(axis: Axis) -> Poly:
    """Return how long an axis is."""
    number = math.prod(factor if isinstance(factor, int) else factor.value or 1 for factor in axis)
    symbols = sorted(atom.symbol for atom in atoms_in([axis]) if atom.value is None)
    return ((tuple(("x", symbol) for symbol in symbols), Fraction(number)),) if number else _poly.ZERO


def product_of(sizes: Iterable[Poly]) -> Poly:
    """Return the product of some sizes."""
    result = _poly.constant_poly(Fraction(1))
    for size in sizes:
        result = _poly.multiply(result, size)
    return result


def total_of(sizes: Iterable[Poly]) -> Poly:
    """Return the sum of some sizes."""
    result = _poly.ZERO
    for size in sizes:
        result = _poly.add(result, size)
    return result


def negative(size: Poly) -> Poly:
    """Return a size times -1."""
    return _poly.subtract(_poly.ZERO, size)


def number_of(size: Poly) -> int | None:
    """Return a size that is a number, else None."""
    number = _poly.as_constant(size)
    return None if number is None else int(number)


def of_number(number: int) -> Poly:
    """Return a number as a size."""
    return _poly.constant_poly(Fraction(number))


def monomial(size: Poly) -> tuple[int, Counter[int]]:
    """Return a size as a number and the symbols that it is multiplied by; refuse a sum."""
    if not size:
        return 0, Counter()
    if len(size) > 1:
        raise Refusal("a shape is computed as a sum of sizes, which the proof doesn't follow", depth=2)
    return int(size[0][1]), Counter(atom[1] for atom in size[0][0])


def quotient(left: Poly, right: Poly) -> Poly | None:
    """Return left / right where it is a whole number for all sizes, else None."""
    if not right or len(right) > 1:
        return None
    divisor, symbols = monomial(right)
    terms = []
    for key, value in left:
        exponents = Counter(key)
        exponents.subtract({("x", symbol): count for symbol, count in symbols.items()})
        if value % divisor or any(count < 0 for count in exponents.values()):
            return None
        terms.append((tuple(sorted(exponents.elements())), value / divisor))
    return tuple(sorted(terms))


class Sizes:
    """Facts about the symbols that stand for sizes, and about expressions of them."""

    def __init__(self) -> None:
        self.atoms: dict[int, Atom] = {}
        self.positions: dict[int, Atom] = {}  # the symbols that stand for a position along an atom, not for its length
        self.cells = 4  # elements of box_predictions for each position of its atoms

    def atom_of(self, size: Poly) -> Atom | None:
        """Return the atom of which an expression is the length."""
        atoms = [self.atoms[symbol] for symbol in _poly.used_slots(size) if symbol in self.atoms]
        return atoms[0] if len(atoms) == 1 and size == size_of((atoms[0],)) else None

    def overflows(self, size: Poly, itemsize: int) -> bool:
        """Tell whether an integer of `itemsize` bytes may be too small for an expression.

        Sizes are such that box_predictions has fewer than 2^31 - 2^16 elements. So is every sum of products of
        different sizes whose coefficients add up to at most the elements that there are for one position of the atoms.
        """
        most = self.cells if itemsize < 8 else MAX_NUMBER[8]
        terms = dict(size)
        number = terms.pop((), Fraction(0))
        if abs(number) > MAX_NUMBER[min(max(itemsize, 4), 8)] or sum(map(abs, terms.values())) > most:
            return True
        # a position is less than its length, so their product may be more than there are elements
        positions = [key for key in terms if any(atom[1] in self.positions for atom in key)]
        return any(len(set(key)) < len(key) for key in terms) or any(len(key) > 1 for key in positions)

    def sign(self, size: Poly) -> int | None:
        """Return the sign that an expression has at all sizes; None where it may have several."""
        if not size:
            return 0
        above = self._from_least(size)
        signs = {value > 0 for _, value in above}
        # the constant term is what is left at the smallest sizes; without one, zero is possible
        if len(signs) > 1 or () not in dict(above):
            return None
        return 1 if True in signs else -1

    def is_at_least(self, size: Poly, least: int) -> bool:
        """Tell whether an expression is proved to reach a number at all sizes."""
        surplus = _poly.subtract(size, of_number(least))
        return all(value > 0 for _, value in self._from_least(surplus))

    def equal(self, left: Poly, right: Poly) -> bool | None:
        """Tell whether two expressions are the same at all sizes, or at none; None: at some."""
        sign = self.sign(_poly.subtract(left, right))
        return None if sign is None else sign == 0

    def _from_least(self, size: Poly) -> Poly:
        """Return an expression in what each symbol has above its least value."""
        total = _poly.ZERO
        for key, value in size:
            term = _poly.constant_poly(value)
            for atom in key:
                least = Fraction(0 if atom[1] in self.positions else self.atoms[atom[1]].least)
                term = _poly.multiply(term, _poly.add((((atom,), Fraction(1)),), _poly.constant_poly(least)))
            total = _poly.add(total, term)
        return total

    def ask_for_ones(self, axes: Iterable[Axis], reason: str) -> None:
        """Ask whether an axis is of length 1, where that is open."""
        for axis in axes:
            if num_cells(axis) == 1 and all(atom.value is None and atom.least < 2 for atom in atoms_in([axis])):
                for atom in atoms_in([axis]):
                    raise Question(atom, reason)

    def ask_for_ones_in(self, expressions: Iterable[Poly], reason: str) -> None:
        """Ask whether a symbol of some expressions is 1, where that is open."""
        for symbol in sorted({symbol for size in expressions for symbol in _poly.used_slots(size)}):
            if symbol not in self.positions and self.atoms[symbol].least < 2:
                raise Question(self.atoms[symbol], reason)


def merge(sizes: Sizes, left: Axis, right: Axis, broadcast: bool = True) -> Axis:
    """Return the axis of two tensors that meet in an operator, element by element."""
    if left == right:
        return left
    if broadcast and not (left and right):
        return left or right
    same = sizes.equal(size_of(left), size_of(right))
    if same is None or same is False:
        sizes.ask_for_ones((left, right), "it depends on whether a size is 1")
    if same is False:
        raise CannotRunError(f"axes of {shown(left)} and {shown(right)} don't match")
    if same is None:
        raise Refusal(f"axes of {shown(left)} and {shown(right)} meet, which may differ", depth=2)
    ask_for_cells(left + right, "equally long axes are ordered in different ways")
    raise Refusal("boxes are mixed: two axes of one size are ordered in different ways", depth=3)


def ask_for_cells(axis: Sequence[Factor], reason: str) -> None:
    """Ask for the positions of a run to be told apart, where the model says how many there are."""
    for factor in axis:
        if isinstance(factor, Atom) and factor.value is not None:
            raise Question(factor, reason)


def regroup(factors: Sequence[Factor], wanted: Sequence[Poly]) -> list[Axis]:
    """Deal factors out, in their order, to axes of the wanted sizes (whose product they have)."""
    remaining = list(reversed(axis_of(factors)))
    axes = []
    for size in wanted:
        number, symbols = monomial(size)
        axis: list[Factor] = []
        while number != 1 or symbols:
            if not remaining:
                raise Refusal("boxes are mixed: a Reshape doesn't fit what it reshapes", depth=3)
            factor = remaining.pop()
            if isinstance(factor, Atom) and factor.value is None:
                if not symbols[factor.symbol]:
                    raise _misfit([*axis, factor, *remaining])
                symbols -= Counter([factor.symbol])
            else:
                length = factor if isinstance(factor, int) else factor.value or 1
                part = length if number % length == 0 else number
                if part == 1 or length % part or (part < length and isinstance(factor, Atom)):
                    raise _misfit([*axis, factor, *remaining])
                if part < length:
                    remaining.append(length // part)
                    factor = part
                number //= part
            axis.append(factor)
        axes.append(axis_of(axis))
    return axes


def _misfit(factors: Sequence[Factor]) -> Refusal:
    reason = "boxes are mixed: a Reshape puts elements of several boxes into one row"
    ask_for_cells(factors, reason)
    return Refusal(reason, depth=3)


def spread(size: Poly, sizes: Sizes) -> Axis:
    """Return an axis of a size along which all elements are the same."""
    number, symbols = monomial(size)
    return axis_of([*(sizes.atoms[symbol] for symbol in sorted(symbols.elements())), number])


def shown(axis: Axis) -> str:
    """Return an axis as text: a letter for every open size."""
    names = "NMKLPQRSTUVWXYZ"
    parts = [
        str(factor)
        if isinstance(factor, int)
        else names[factor.axis % len(names)]
        if factor.value is None
        else str(factor.value)
        for factor in axis
    ]
    return "*".join(parts) or "1"
