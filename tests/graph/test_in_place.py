"""Decodes that write corners into a tensor of zeros, as Detectron2 does: what ScatterND must write, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from detops.graph import fuse_decode_bbox
from detops.graph._finding import Refusal
from detops.graph.model._graph import Node
from detops.graph.ops._ops import Run, Symbolic
from detops.graph.ops._ops_onnx import ONNX
from detops.graph.symbols._sizes import axis_of, num_cells

from .models import DATA, IN_PLACE, boxes, check_valid, in_place, operators, predictions, run


def written(change: tuple[str, str], constants: dict[str, Any], **arguments: Any) -> onnx.ModelProto:
    """Return a decode in place, with one text of its lines replaced."""
    assert change[0] in IN_PLACE
    return in_place(IN_PLACE.replace(*change) if change[0] else IN_PLACE, constants, **arguments)


def _agree(model: onnx.ModelProto, fused: onnx.ModelProto, *counts: int) -> None:
    for count in counts:
        feeds = {"d": predictions((count, 4)), "b": boxes((count, 4))}
        np.testing.assert_allclose(run(fused, feeds)[0], run(model, feeds)[0], rtol=1e-5, atol=1e-3)


def test_detectron2_is_fused() -> None:
    """Four assignments to every fourth column, for three classes and any number of boxes."""
    model = onnx.load(DATA / "exports" / "d2_in_place.ts.onnx")
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.classes, finding.scales) == (True, 3, (10, 10, 5, 5))
    assert operators(fused) == ["DecodeBboxV2"]
    check_valid(fused)
    for count in (0, 1, 9):
        feeds = {"d": predictions((count, 12)), "b": boxes((count, 4))}
        np.testing.assert_allclose(run(fused, feeds)[0], run(model, feeds)[0], rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(
    ("change", "constants"),
    [
        (("", ""), {}),
        (("", ""), {"at_low": np.array([-4, -3]), "at_high": np.array([-2, -1])}),
        (("blank = ConstantOfShape(whole)", "blank = Identity(d)"), {}),
    ],
    ids=["as it is", "from the end", "over the predictions"],
)
@pytest.mark.parametrize("rows", ["N", "7"])
def test_corners_in_place(rows: str, change: tuple[str, str], constants: dict[str, Any]) -> None:
    model = written(change, constants, inputs=f"float[{rows},4] d, float[{rows},4] b", outputs=f"float[{rows},4] out")
    fused, (finding,) = fuse_decode_bbox(model)
    assert (finding.fused, finding.decoded_boxes) == (True, "out")
    assert operators(fused) == ["DecodeBbox"]
    _agree(model, fused, *((0, 1, 9) if rows == "N" else (7,)))


@pytest.mark.parametrize(
    ("change", "constants"),
    [
        (("", ""), {"at_low": np.array([1, 0])}),
        (("", ""), {"at_high": np.array([1, 2])}),
        (("", ""), {"at_high": np.array([0, 1])}),
        (("", ""), {"at_low": np.array([0, 0])}),
        (("", ""), {"start": np.array(1)}),
        (("", ""), {"step": np.array(2)}),
        (("limit = Cast<to=7>(n)", "less = Sub(n, step)\nlimit = Cast<to=7>(less)"), {}),
        (("column = Reshape(counted, single)", "back = Sub(n, counted)\ncolumn = Reshape(back, single)"), {}),
        (("rows_high = Expand(column", "zeros = Mul(column, first)\nrows_high = Expand(zeros"), {}),
        (("rows_high = Expand(column", "more = Add(column, step)\nrows_high = Expand(more"), {}),
        (("index_high = Concat<axis=-1>(r1, c1)", "index_high = Concat<axis=-1>(c1, r1)"), {}),
        (("blank = ConstantOfShape(whole)", "twice = Add(whole, whole)\nblank = ConstantOfShape(twice)"), {}),
        (("out = ScatterND(half_way", "out = ScatterND(blank"), {}),
        (("out = ScatterND(half", 'out = ScatterND<reduction="add">(half'), {"at_high": np.array([1, 2])}),
        (("n = Gather<axis=0>(whole, first)", "n = Gather<axis=0>(whole, step)"), {}),
    ],
    ids=[
        "corners swapped",
        "an overlap",
        "written over",
        "one place twice",
        "from the second row",
        "every other row",
        "all but the last row",
        "rows in reverse",
        "all into the first row",
        "one row further down",
        "tuples in reverse",
        "a larger tensor",
        "one half only",
        "added",
        "as many rows as columns",
    ],
)
@pytest.mark.parametrize("rows", ["N", "4"])
def test_what_is_written_elsewhere_is_refused(rows: str, change: tuple[str, str], constants: dict[str, Any]) -> None:
    model = written(change, constants, inputs=f"float[{rows},4] d, float[{rows},4] b")
    fused, findings = fuse_decode_bbox(model)
    if rows == "4" and change[1].endswith("(whole, step)"):
        assert [finding.fused for finding in findings] == [True]  # there are as many rows as columns
        return
    assert [finding.fused for finding in findings] == [False], findings
    assert fused == model


def test_positions_are_no_sizes() -> None:
    """What is counted up to a size may be less than any number, and is no shape."""
    model = written(("column = Reshape(counted, single)", "column = Reshape(counted, counted)"), {})
    assert not any(finding.fused for finding in fuse_decode_bbox(model)[1])


def _rule(columns: list[Any], axes: list[Any], updates: list[Any]) -> Any:
    """Apply the rule to a tensor of (N, M, 4), with a column of indices for each of its axes that is given."""
    run = Run()
    atoms = {"N": run.atom(0, None, 1), "M": run.atom(1, None, 1)}

    def tensor(names: list[Any]) -> Symbolic:
        made = [(atoms[name],) if isinstance(name, str) else axis_of([name]) for name in names]
        return Symbolic(run.pool.symbols(tuple(map(num_cells, made))), tuple(made), np.dtype(np.float32))

    lead = [(atoms[name],) if isinstance(name, str) else axis_of([name]) for name in axes]
    shape = [num_cells(axis) for axis in lead]
    positions = {name: run.lift(run.position(atom)) for name, atom in atoms.items()}
    cells = [
        np.broadcast_to(positions[column] if isinstance(column, str) else run.lift(np.array(column)), shape)
        for column in columns
    ]
    ids = np.stack(cells, axis=-1)
    indices = Symbolic(ids, (*lead, axis_of([len(columns)])), np.dtype(np.int64))
    node = Node("n", "ScatterND", ("", "", ""), ("o",), None, lambda _: {}, 17)
    given = tensor(["N", "M", 4]), indices, tensor(updates)
    (result,) = ONNX["ScatterND"].apply(run, node, given)
    return [value.ids.ravel().tolist() for value in (result, given[0], given[2])]


def test_positions_that_the_rule_follows() -> None:
    result, data, updates = _rule(["N", "M", [[[0, 2]]]], ["N", "M", 2], ["N", "M", 2])
    assert result == [updates[0], data[1], updates[1], data[3]]
    result, _, updates = _rule(["N", "M"], ["N", "M"], ["N", "M", 4])
    assert result == updates


@pytest.mark.parametrize(
    ("columns", "axes", "updates", "reason"),
    [
        (["M", "N"], ["N", "M"], ["N", "M", 4], "position along another axis"),
        (["N"], ["N", "M"], ["N", "M", "M", 4], "otherwise than to each position"),
        (["N", "M"], ["N", "M", 2], ["N", "M", 2, 4], "writes an element twice"),
        (["N", "M", [[[1, 1]]]], ["N", "M", 2], ["N", "M", 2], "writes an element twice"),
        (["N", [0]], ["N"], ["N", 4], "an axis whose size is open"),
        (["N", "M", [[[0, 4]]]], ["N", "M", 2], ["N", "M", 2], "writes outside an axis"),
        (["N", "M"], ["M", "N"], ["N", "M", 4], "whether a size is 1"),
        (["N", "M"], ["N", "M"], ["N", "M"], "updates of rank"),
    ],
)
def test_positions_that_the_rule_refuses(columns: list[Any], axes: list[Any], updates: list[Any], reason: str) -> None:
    with pytest.raises(Refusal, match=reason):
        _rule(columns, axes, updates)
