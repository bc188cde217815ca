"""Moves elements: what reshapes, cuts and joins do to a tensor's cells and to its axes, at all sizes at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from detops.graph._finding import CannotRunError, Refusal
from detops.graph.symbols import _poly, _sizes
from detops.graph.symbols._poly import Poly
from detops.graph.symbols._sizes import (
    ENDLESS,
    Atom,
    Axis,
    Factor,
    atoms_in,
    axis_of,
    num_cells,
    number_of,
    of_number,
    size_of,
)

if TYPE_CHECKING:
    from detops.graph.ops._ops import Run, Value

Clamp = Callable[[int | None, int | None, int, int], slice]  # from start, stop, step and size


def normalize_axis(axis: int, rank: int) -> int:
    """Return an axis counted from the front."""
    if not -rank <= axis < rank:
        raise CannotRunError(f"axis {axis} doesn't exist in a tensor of rank {rank}")
    return axis % rank


def permute(run: Run, value: Value, order: Sequence[int]) -> Value:
    """Transpose."""
    axes = run.axes(value)
    if sorted(order) != list(range(len(axes))):
        raise CannotRunError(f"{run.label} permutes {len(order)} axes of a tensor of rank {len(axes)}")
    return run.like(value, np.transpose(run.cells(value), order), [axes[axis] for axis in order])


def reshape(run: Run, value: Value, wanted: Sequence[Poly], *, empty: bool = False) -> Value:
    """Reshape to sizes, of which one may be -1.

    Where the others have no elements, that one cannot be told. With `empty`, zeros are left out to tell it.
    """
    axes = run.axes(value)
    before = [size_of(axis) for axis in axes]
    if empty and of_number(-1) in wanted and _poly.ZERO in before and _poly.ZERO in wanted:
        share = _resolved(run, _sizes.product_of(filter(None, before)), [size for size in wanted if size])
        remaining = iter(share)
        wanted = [next(remaining) if size else size for size in wanted]
    sizes = _resolved(run, _sizes.product_of(before), wanted)
    factors = [factor for axis in axes for factor in axis]
    after = [_sizes.spread(size, run.sizes) for size in sizes] if 0 in factors else _sizes.regroup(factors, sizes)
    return run.like(value, run.cells(value).reshape([num_cells(axis) for axis in after]), after)


def _resolved(run: Run, total: Poly, wanted: Sequence[Poly]) -> list[Poly]:
    """Return the sizes of a Reshape's result, which have as many elements as its input."""
    sizes = list(wanted)
    inferred = [index for index, size in enumerate(sizes) if number_of(size) == -1]
    if len(inferred) > 1:
        raise CannotRunError(f"{run.label} leaves two sizes open")
    others = _sizes.product_of(size for index, size in enumerate(sizes) if index not in inferred)
    fixed = number_of(total) is not None and number_of(others) is not None
    for size in sizes:
        if number_of(size) != -1 and not run.sizes.is_at_least(size, 0):
            reason = f"{run.label} reshapes to a size that may be negative"
            raise Refusal(reason, depth=2) if number_of(size) is None else CannotRunError(reason)
    if inferred:
        share = _sizes.quotient(total, others)
        if share is None:
            reason = f"{run.label} doesn't deal its elements out evenly at every size"
            raise CannotRunError(reason) if fixed else Refusal(reason, depth=2)
        sizes[inferred[0]] = share
        return sizes
    same = run.sizes.equal(others, total)
    if same is None:
        reason = f"{run.label} reshapes to a number of elements that may be another than its input's"
        run.sizes.ask_for_ones_in((others, total), reason)
        raise Refusal(reason, depth=2)
    if not same:
        raise CannotRunError(f"{run.label} reshapes to another number of elements")
    return sizes


def squeeze(run: Run, value: Value, picked: Sequence[int] | None) -> Value:
    """Drop axes of length 1; None drops all that are."""
    axes = run.axes(value)
    if picked is None:
        run.sizes.ask_for_ones([axis for axis in axes if axis], f"{run.label} drops an axis where its size is 1")
        dropped = [index for index, axis in enumerate(axes) if not axis]
    else:
        dropped = [normalize_axis(axis, len(axes)) for axis in picked]
    for index in dropped:
        if axes[index]:
            run.sizes.ask_for_ones([axes[index]], f"{run.label} drops an axis that may be longer than 1")
            raise CannotRunError(f"{run.label} drops an axis of {_sizes.shown(axes[index])}")
    kept = [axis for index, axis in enumerate(axes) if index not in dropped]
    return run.like(value, run.cells(value).reshape([num_cells(axis) for axis in kept]), kept)


def insert(run: Run, value: Value, picked: Sequence[int]) -> Value:
    """Insert axes of length 1, numbered as in the result."""
    rank = len(run.axes(value)) + len(picked)
    inserted = {normalize_axis(axis, rank) for axis in picked}
    if len(inserted) < len(picked):
        raise CannotRunError(f"{run.label} inserts an axis twice")
    remaining = iter(run.axes(value))
    axes: list[Axis] = [() if index in inserted else next(remaining) for index in range(rank)]
    return run.like(value, run.cells(value).reshape([num_cells(axis) for axis in axes]), axes)


def cut(run: Run, value: Value, axis: int, start: Poly | None, stop: Poly | None, step: int, clamp: Clamp) -> Value:
    """Take a slice along one axis; an open one is only taken whole, or in every nth position of its last factor."""
    whole = run.axes(value)[axis]
    size = size_of(whole)
    to_the_end = stop is None or (number_of(stop) is not None and (number_of(stop) or 0) >= ENDLESS)
    to_the_end = to_the_end or (stop is not None and run.sizes.is_at_least(_poly.subtract(stop, size), 0))
    first = 0 if start is None else number_of(start)
    if to_the_end and step == 1 and first is not None and (first == 0 or first <= -ENDLESS):
        return value
    last = whole[-1] if whole and isinstance(whole[-1], int) else 1
    if atoms_in([whole]) and to_the_end and last % step == 0 and first is not None and 0 <= first < step:
        return along(run, value, axis, lambda cells: cells[first::step], [*whole[:-1], last // step])
    listed(whole, f"{run.label} cuts an axis whose size is open")
    ends = [end if end is None else number_of(end) for end in (start, stop)]
    if any(end is not None and number is None for end, number in zip((start, stop), ends, strict=True)):
        raise Refusal(f"{run.label} cuts where a size that is open says", depth=2)
    length = num_cells(whole)
    index = clamp(ends[0], ends[1], step, length)
    return along(run, value, axis, lambda cells: cells[index], [len(range(*index.indices(length)))])


def along(
    run: Run, value: Value, axis: int, function: Callable[[NDArray[Any]], NDArray[Any]], factors: Sequence[Factor]
) -> Value:
    """Apply a function of arrays to the cells, with one axis in front, and give that axis other factors."""
    axes = list(run.axes(value))
    axes[axis] = axis_of(factors)
    cells = np.moveaxis(function(np.moveaxis(run.cells(value), axis, 0)), 0, axis)
    return run.like(value, cells, axes)


def listed(axis: Axis, reason: str) -> None:
    """Refuse an axis whose positions aren't told apart, or ask for them where their number is known."""
    if atoms_in([axis]):
        raise open_axis(axis, reason)


def open_axis(axis: Axis, reason: str) -> Refusal:
    """Return a refusal of an axis with atoms, or ask for its positions where their number is known."""
    _sizes.ask_for_cells(axis, reason)
    return Refusal(reason, depth=3)


def take(run: Run, value: Value, axis: int, indices: NDArray[Any]) -> Value:
    """Gather along an axis."""
    if indices.dtype.kind not in "iu":
        raise CannotRunError(f"{run.label} needs integer indices")
    axes = run.axes(value)
    listed(axes[axis], f"{run.label} picks from an axis whose size is open")
    length = num_cells(axes[axis])
    if indices.size and not -length <= indices.min() <= indices.max() < length:
        raise CannotRunError(f"{run.label} picks outside an axis of {length}")
    after = [*axes[:axis], *(axis_of([dim]) for dim in indices.shape), *axes[axis + 1 :]]
    return run.like(value, np.take(run.cells(value), indices, axis=axis), after)


def split(run: Run, value: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
    """Cut an axis into pieces of the given sizes."""
    whole = run.axes(value)[axis]
    listed(whole, f"{run.label} cuts an axis whose size is open")
    if sum(sizes) != num_cells(whole) or any(size < 0 for size in sizes):
        raise CannotRunError(f"{run.label} cuts an axis of {num_cells(whole)} into {list(sizes)}")
    ends = np.cumsum([0, *sizes]).tolist()
    return [_piece(run, value, axis, *bounds, [bounds[1] - bounds[0]]) for bounds in pairwise(ends)]


def _piece(run: Run, value: Value, axis: int, start: int, stop: int, factors: Sequence[Factor]) -> Value:
    return along(run, value, axis, lambda cells: cells[start:stop], factors)


def split_evenly(run: Run, value: Value, axis: int, count: int) -> list[Value]:
    """Cut an axis into equal pieces: of an open one, its first factor."""
    whole = run.axes(value)[axis]
    first = whole[0] if whole else 1
    if count == 1:
        return [value]
    if isinstance(first, Atom) or (first % count and atoms_in([whole])):
        raise open_axis(whole, f"{run.label} cuts an axis whose size is open")
    if first % count:
        raise CannotRunError(f"{run.label} cuts {first} into {count} equal parts")
    cells, factors = num_cells(whole) // count, [first // count, *whole[1:]]
    return [_piece(run, value, axis, at * cells, (at + 1) * cells, factors) for at in range(count)]


def concatenate(run: Run, values: Sequence[Value], axis: int) -> Value:
    """Concat: of open axes, only those that are all alike."""
    ranks = {len(run.axes(value)) for value in values}
    if len(ranks) > 1:
        raise CannotRunError(f"{run.label} joins tensors of different rank")
    axes = list(run.axes(values[0]))
    for value in values[1:]:
        for other, theirs in enumerate(run.axes(value)):
            if other != axis:
                axes[other] = _sizes.merge(run.sizes, axes[other], theirs, broadcast=False)
    parts = [run.axes(value)[axis] for value in values]
    if any(atoms_in([part]) for part in parts) and len(set(parts)) == 1:
        axes[axis] = axis_of([len(parts), *parts[0]])
    else:
        for part in parts:
            listed(part, f"{run.label} joins axes whose sizes are open")
        axes[axis] = axis_of([sum(map(num_cells, parts))])
    return run.joined(values, lambda cells: np.concatenate(cells, axis=axis), axes)


def broadcast(run: Run, value: Value, wanted: Sequence[Poly], *, both_ways: bool) -> Value:
    """Broadcast to a shape; `both_ways` also where an axis of the value is the longer one."""
    axes = run.axes(value)
    if len(axes) > len(wanted) and not both_ways:
        raise CannotRunError(f"{run.label} broadcasts to fewer axes")
    rank = max(len(axes), len(wanted))
    theirs: list[Axis] = [()] * (rank - len(axes)) + list(axes)
    sizes = [of_number(1)] * (rank - len(wanted)) + list(wanted)
    after = [_met(run, axis, size, both_ways) for axis, size in zip(theirs, sizes, strict=True)]
    run.check_size(after)
    cells = run.cells(value).reshape([num_cells(axis) for axis in theirs])
    return run.like(value, np.broadcast_to(cells, [num_cells(axis) for axis in after]), after)


def _met(run: Run, axis: Axis, size: Poly, both_ways: bool) -> Axis:
    if not run.sizes.is_at_least(size, 0):
        raise Refusal(f"{run.label} broadcasts to a size that may be negative", depth=2)
    if not axis:
        return _sizes.spread(size, run.sizes)
    if both_ways and number_of(size) == 1:
        return axis
    same = run.sizes.equal(size_of(axis), size)
    if same:
        return axis
    if same is None or not same:
        run.sizes.ask_for_ones([axis], f"{run.label} broadcasts an axis where its size is 1")
        if both_ways:
            run.sizes.ask_for_ones_in([size], f"{run.label} broadcasts an axis where its size is 1")
    if same is None:
        raise Refusal(f"{run.label} broadcasts to a size that may be another", depth=2)
    raise CannotRunError(f"{run.label} broadcasts an axis of {_sizes.shown(axis)} to another size")


def tile(run: Run, value: Value, repeats: Sequence[Poly]) -> Value:
    """Repeat along each axis."""
    axes = run.axes(value)
    if len(repeats) != len(axes):
        raise CannotRunError(f"{run.label} repeats {len(repeats)} axes of {len(axes)}")
    if not all(run.sizes.is_at_least(count, 0) for count in repeats):
        raise Refusal(f"{run.label} repeats an unknown number of times, maybe fewer than none", depth=2)
    times = [_sizes.spread(count, run.sizes) for count in repeats]
    after = [axis_of([*count, *axis]) for count, axis in zip(times, axes, strict=True)]
    run.check_size(after)
    return run.like(value, np.tile(run.cells(value), [num_cells(count) for count in times]), after)


def scatter(run: Run, value: Value, indices: Value, updates: Value) -> Value:
    """Write updates into a tensor at index tuples, of which no two are the same.

    An index along an open axis must be the position itself, for each position: what is written there is what the
    updates hold at that position.
    """
    axes = run.axes(value)
    *lead, last = run.axes(indices) or ((),)
    listed(last, f"{run.label} takes index tuples of open length")
    width = num_cells(last)
    if not 0 < width <= len(axes) or not run.axes(indices):
        raise CannotRunError(f"{run.label} takes index tuples of {width} for a tensor of rank {len(axes)}")
    wanted, theirs = [*lead, *axes[width:]], run.axes(updates)
    if len(theirs) != len(wanted):
        raise CannotRunError(f"{run.label} takes updates of rank {len(theirs)} where {len(wanted)} are wanted")
    for pair in zip(wanted, theirs, strict=True):
        _sizes.merge(run.sizes, *pair, broadcast=False)
    columns = [run.indices(indices, index) for index in range(width)]
    counted = [column for column in columns if isinstance(column, Atom)]
    if set(counted) != set(atoms_in(lead)):
        raise Refusal(f"{run.label} writes along an open axis otherwise than to each position", depth=2)
    shape = [num_cells(axis) for axis in lead]
    targets = [_cells_at(run, *pair, shape) for pair in zip(axes[:width], columns, strict=True)]
    tuples = np.stack(targets, axis=-1).reshape(-1, width)
    if len(np.unique(tuples, axis=0)) < len(tuples):
        raise Refusal(f"{run.label} writes an element twice", depth=2)

    def written(cells: Sequence[NDArray[Any]]) -> NDArray[Any]:
        result = cells[0].copy()
        result[tuple(targets)] = cells[1]
        return result

    return run.joined([value, updates], written, axes)


def _cells_at(run: Run, axis: Axis, column: NDArray[Any] | Atom, shape: Sequence[int]) -> NDArray[Any]:
    """Return the cells along an axis that a column of indices means."""
    if isinstance(column, Atom):
        if axis != (column,):
            raise Refusal(f"{run.label} takes a position along another axis", depth=3)
        return np.zeros(shape, np.int64)
    listed(axis, f"{run.label} writes to some places of an axis whose size is open")
    length = num_cells(axis)
    if column.size and not -length <= column.min() <= column.max() < length:
        raise CannotRunError(f"{run.label} writes outside an axis of {length}")
    return np.where(column < 0, column + length, column)
