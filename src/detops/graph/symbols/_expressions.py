"""Normal forms: exact polynomials over input elements, exp(.) and min/max(., constant), kept for whole arrays.

An element of a tensor is a *form* (a polynomial over slots 0, 1, ...) and the *symbols* that fill its slots in
rising order. Thousands of elements share a handful of forms, so arithmetic handles each form once and each array with
NumPy. Two elements are equal as expressions exactly when form and symbols are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detops.graph._finding import Refusal
from detops.graph.symbols._poly import Poly, constant_poly, relabel, used_slots

IntArray = NDArray[np.int64]

WIDTH = 6  # symbols per element; a decode needs four
MAX_WORK = 1 << 23
OVERHEAD = 256  # what an operation costs besides its elements
NODE = 16  # what it costs to pass a node of the graph
MAX_FORMS = 1 << 12


class Budget:
    """How much work a search may still do, in elements that arithmetic is done on; a hostile graph must not hang it.

    All that a search does over and over takes some of it, so the time doesn't depend on how a graph is made.
    """

    def __init__(self, elements: int) -> None:
        self.left = elements

    def spend(self, elements: int) -> None:
        """Take some of it, or refuse."""
        self.left -= elements
        if self.left < 0:
            raise Refusal("the proof would take too long: there are too many elements, or too many choices to try")


class Pool:
    """All elements of one symbolic run; a tensor is an integer array of positions in it."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = budget or Budget(MAX_WORK)
        self.forms: list[Poly] = []
        self._form_index: dict[Poly, int] = {}
        self._form_of: IntArray = np.zeros(1024, np.int64)
        self._symbols: IntArray = np.full((1024, WIDTH), -1, np.int64)
        self._size = 0
        self._num_symbols = 0
        self._constants: dict[Fraction, int] = {}

    def _intern(self, poly: Poly) -> int:
        index = self._form_index.setdefault(poly, len(self.forms))
        if index == len(self.forms):
            if index >= MAX_FORMS:
                raise Refusal("the arithmetic has more different expressions than a box decode can have")
            self.forms.append(poly)
        return index

    def _append(self, form_of: IntArray, symbols: IntArray) -> IntArray:
        start, stop = self._size, self._size + len(form_of)
        while stop > len(self._form_of):
            self._form_of = np.concatenate([self._form_of, np.zeros_like(self._form_of)])
            self._symbols = np.concatenate([self._symbols, np.full_like(self._symbols, -1)])
        self._form_of[start:stop] = form_of
        self._symbols[start:stop] = symbols
        self._size = stop
        return np.arange(start, stop, dtype=np.int64)

    def symbols(self, shape: tuple[int, ...]) -> IntArray:
        """Return a tensor of fresh symbols; they are numbered on from the last one made."""
        count = math.prod(shape)
        self.budget.spend(count)
        columns = np.full((count, WIDTH), -1, np.int64)
        columns[:, 0] = np.arange(self._num_symbols, self._num_symbols + count)
        self._num_symbols += count
        form = self._intern((((("x", 0),), Fraction(1)),))
        return self._append(np.full(count, form, np.int64), columns).reshape(shape)

    def constants(self, values: NDArray[Any]) -> IntArray:
        """Return a tensor of exact constants."""
        if not np.isfinite(values).all():
            raise Refusal("a constant is infinite or NaN")
        unique, inverse = np.unique(values.ravel(), return_inverse=True)
        ids = np.array([self._constant(Fraction(value.item())) for value in unique], np.int64)
        return ids[inverse].reshape(values.shape)

    def expression(self, poly: Poly) -> int:
        """Return the position of an expression whose slots are symbols."""
        symbols = sorted(used_slots(poly))
        if len(symbols) > WIDTH:
            raise Refusal(f"a size is made of more than {WIDTH} others", depth=2)
        form = self._intern(relabel(poly, {symbol: slot for slot, symbol in enumerate(symbols)}))
        row = np.full((1, WIDTH), -1, np.int64)
        row[0, : len(symbols)] = symbols
        return int(self._append(np.array([form], np.int64), row)[0])

    def _constant(self, value: Fraction) -> int:
        if value not in self._constants:
            form = np.array([self._intern(constant_poly(value))], np.int64)
            self._constants[value] = int(self._append(form, np.full((1, WIDTH), -1, np.int64))[0])
        return self._constants[value]

    def unary(self, function: Callable[[Poly], Poly], tensor: IntArray) -> IntArray:
        """Apply a function of forms that keeps the slots."""
        self.budget.spend(tensor.size + OVERHEAD)
        ids, inverse = np.unique(tensor, return_inverse=True)
        forms, form_inverse = np.unique(self._form_of[ids], return_inverse=True)
        results = np.array([self._intern(function(self.forms[form])) for form in forms], np.int64)
        made = self._append(results[form_inverse], self._symbols[ids])
        return made[inverse].reshape(tensor.shape)

    def binary(self, function: Callable[[Poly, Poly], Poly], left: IntArray, right: IntArray) -> IntArray:
        """Apply a function of two forms, element by element, with broadcasting."""
        left, right = np.broadcast_arrays(left, right)
        self.budget.spend(left.size + OVERHEAD)
        pairs, inverse = np.unique(left.ravel() * self._size + right.ravel(), return_inverse=True)
        ids_l, ids_r = pairs // self._size, pairs % self._size
        symbols_l, symbols_r = self._used(ids_l), self._used(ids_r)
        merged, ranks = _merge(symbols_l, symbols_r)
        key = self._form_of[ids_l] * MAX_FORMS + self._form_of[ids_r]
        for column in ranks.T:
            key = key * 8 + column + 1
        _, first, group_of = np.unique(key, return_index=True, return_inverse=True)
        form_of = np.empty(len(first), np.int64)
        kept_of = np.full((len(first), WIDTH), WIDTH, np.int64)  # where each slot's symbol is in `merged`
        split = symbols_l.shape[1]
        for group, row in enumerate(first):
            slots = [int(rank) for rank in ranks[row]]
            form_l, form_r = self.forms[self._form_of[ids_l[row]]], self.forms[self._form_of[ids_r[row]]]
            poly = function(relabel(form_l, slots[:split]), relabel(form_r, slots[split:]))
            kept = sorted(used_slots(poly))
            form_of[group] = self._intern(relabel(poly, {old: new for new, old in enumerate(kept)}))
            kept_of[group, : len(kept)] = kept
        symbols = np.take_along_axis(merged, kept_of[group_of], axis=1)
        return self._append(form_of[group_of], symbols)[inverse].reshape(left.shape)

    def _used(self, ids: IntArray) -> IntArray:
        """Return the symbols of some elements without the columns that none of them uses."""
        symbols = self._symbols[ids]
        width = int((symbols >= 0).any(axis=0).sum()) if len(ids) else 0
        return symbols[:, :width]

    def same(self, left: IntArray, right: IntArray) -> NDArray[np.bool_]:
        """Return where two tensors of one shape hold equal expressions."""
        equal: NDArray[np.bool_] = self._form_of[left] == self._form_of[right]
        return equal & (self._symbols[left] == self._symbols[right]).all(axis=-1)

    def element(self, position: int) -> tuple[Poly, list[int]]:
        """Return the form of one element and the symbols in its slots."""
        row = self._symbols[position]
        return self.forms[self._form_of[position]], [int(symbol) for symbol in row if symbol >= 0]


def _merge(left: IntArray, right: IntArray) -> tuple[IntArray, IntArray]:
    """Merge two rows of symbols: the sorted union of each, and each old slot's place in it (-1 for none).

    The union has one column more than can be used, which holds -1.
    """
    both = np.concatenate([left, right], axis=1)
    order = np.argsort(both, axis=1, kind="stable")
    ordered = np.take_along_axis(both, order, axis=1)
    fresh = ordered >= 0
    fresh[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    slots = np.cumsum(fresh, axis=1) - 1
    if slots.size and slots.max() >= WIDTH:
        raise Refusal(f"an output element mixes more than {WIDTH} input elements", depth=2)
    ranks = np.empty_like(both)
    np.put_along_axis(ranks, order, np.where(ordered >= 0, slots, -1), axis=1)
    merged = np.full((len(both), WIDTH + 1), -1, np.int64)
    rows, columns = np.nonzero(fresh)
    merged[rows, slots[rows, columns]] = ordered[rows, columns]
    return merged, ranks
