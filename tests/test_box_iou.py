"""box_iou: errors, values by hand, what holds for all boxes, blocks and threads."""

import math

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.errors import TypingError

import detops
import detops.numba
from detops._specification import OPERATORS
from detops.testing.arguments import array, boxes
from tests.cases import boxes_of

BACKENDS = ("cython", "numba", "cuda")
MODES = tuple(OPERATORS["box_iou"].option("mode").words)
OF_DISTANCE = ("giou", "diou", "ciou")
Z = np.zeros((3, 4))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((Z[:, :3], Z), ValueError, "boxes_a: expected shape (num_a, 4), got (3, 3)"),
        ((Z, Z[0]), ValueError, "boxes_b: expected shape (num_b, 4), got (4,)"),
        ((Z[None], Z), ValueError, "boxes_a: expected shape (num_a, 4), got (1, 3, 4)"),
        ((Z, Z[:2], {"aligned": True}), ValueError, "boxes_b: expected shape (3, 4), got (2, 4)"),
        ((Z, Z, {"aligned": 2}), TypeError, "aligned: expected a bool, got 2"),
        (
            (Z, Z, {"mode": "IoU"}),
            ValueError,
            "mode: expected one of 'iou', 'iof', 'giou', 'diou', 'ciou', got 'IoU'",
        ),
        (
            (Z, Z, {"out": np.zeros((3, 3), "f")}),
            ValueError,
            "out: expected shape (3, 3) and dtype float64, got (3, 3) and float32",
        ),
    ],
)
def test_errors(arguments, error, message):
    *both, options = arguments if len(arguments) == 3 else (*arguments, {})
    with pytest.raises(error) as caught:
        detops.box_iou(*both, **options)
    assert str(caught.value) == message


SQUARE = (0, 0, 10, 10)
BY_HAND = [
    # Equal.
    (SQUARE, SQUARE, {"iou": 1, "iof": 1, "giou": 1, "diou": 1, "ciou": 1}),
    # Half of it apart: the hull is 15 by 10.
    (SQUARE, (5, 0, 15, 10), {"iou": 1 / 3, "iof": 1 / 2, "giou": 1 / 3, "diou": 1 / 3 - 25 / 325}),
    # In it: the hull is the square.
    (SQUARE, (0, 0, 5, 5), {"iou": 1 / 4, "iof": 1 / 4, "giou": 1 / 4, "diou": 1 / 4 - 12.5 / 200}),
    ((0, 0, 5, 5), SQUARE, {"iou": 1 / 4, "iof": 1}),
    # They touch; they are apart.
    (SQUARE, (10, 0, 20, 10), {"iou": 0, "iof": 0, "giou": 0, "diou": -100 / 500, "ciou": -100 / 500}),
    (SQUARE, (30, 0, 40, 10), {"iou": 0, "giou": -200 / 400, "diou": -900 / 1700}),
    # A point in it, the same point twice, a point apart, a line across.
    (SQUARE, (5, 5, 5, 5), {"iou": 0, "iof": 0, "giou": 0, "diou": 0, "ciou": 0}),
    ((5, 5, 5, 5), (5, 5, 5, 5), {"iou": 0, "iof": 0, "giou": 0, "diou": 0, "ciou": 0}),
    ((5, 5, 5, 5), (8, 9, 8, 9), {"iou": 0, "giou": -1, "diou": -1, "ciou": -1}),
    (SQUARE, (0, 5, 20, 5), {"iou": 0, "iof": 0, "giou": -1 / 2, "diou": -25 / 500}),
    # Turned, NaN, infinite: nowhere.
    (SQUARE, (10, 0, 0, 10), {"iou": 0, "iof": 0, "giou": -1, "diou": -1, "ciou": -1}),
    (SQUARE, (0, math.nan, 10, 10), {"iou": 0, "iof": 0, "giou": -1, "diou": -1, "ciou": -1}),
    (SQUARE, (0, 0, math.inf, 10), {"iou": 0, "iof": 0, "giou": -1, "diou": -1, "ciou": -1}),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("a", "b", "wanted"), BY_HAND)
def test_by_hand(a, b, wanted, backend):
    for mode, value in wanted.items():
        for dtype, tolerance in (("float32", 1e-6), ("float64", 1e-14)):
            both = np.array([a], dtype), np.array([b], dtype)
            got = detops.box_iou(*both, mode=mode, backend=backend)
            assert (got.shape, got.dtype) == ((1, 1), dtype)
            assert got[0, 0] == pytest.approx(value, abs=tolerance), mode


def torchvision(a, b, mode):
    """What torchvision's functions say of pairs, whose distances and aspects have 1e-7 in their divisors."""
    size_a, size_b = a[:, 2:] - a[:, :2], b[:, 2:] - b[:, :2]
    inner = np.clip(np.minimum(a[:, 2:], b[:, 2:]) - np.maximum(a[:, :2], b[:, :2]), 0, None).prod(axis=1)
    union = size_a.prod(axis=1) + size_b.prod(axis=1) - inner
    hull = np.maximum(a[:, 2:], b[:, 2:]) - np.minimum(a[:, :2], b[:, :2])
    iou = inner / union
    if mode == "giou":
        return iou - (hull.prod(axis=1) - union) / hull.prod(axis=1)
    apart = ((a[:, :2] + a[:, 2:] - b[:, :2] - b[:, 2:]) ** 2).sum(axis=1) / 4 / ((hull**2).sum(axis=1) + 1e-7)
    aspects = np.arctan(size_a[:, 0] / size_a[:, 1]) - np.arctan(size_b[:, 0] / size_b[:, 1])
    v = 4 / np.pi**2 * aspects**2
    return {"iou": iou, "diou": iou - apart, "ciou": iou - apart - v / (1 - iou + v + 1e-7) * v}[mode]


@pytest.mark.parametrize("backend", ["cython", "numba"])
@pytest.mark.parametrize("mode", ["iou", *OF_DISTANCE])
def test_the_functions_of_torchvision(mode, backend):
    rng = np.random.default_rng(5)
    a, b = boxes_of(rng, 2000, 30), boxes_of(rng, 2000, 30)
    wanted = torchvision(a, b, mode)
    assert np.count_nonzero(wanted > 0.1) > 100
    got = detops.box_iou(a, b, mode=mode, aligned=True, backend=backend)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-7)


ODD = [np.nan, np.inf, -np.inf, 1e30, -1e30, 1e-30, 3e38]
ANY = st.sampled_from(["float32", "float64"]).flatmap(
    lambda dtype: st.tuples(*[st.one_of(array(dtype, (6, 4), -9, 9, parts=2, odd=ODD), boxes(dtype, (6,)))] * 2)
)


@pytest.mark.parametrize("offset", [0, 1])
@given(both=ANY)
def test_what_holds_for_all_boxes(offset, both):
    with np.errstate(all="ignore"):
        found = {mode: detops.box_iou(*both, mode=mode, offset=offset) for mode in MODES}
    for mode, result in found.items():
        assert np.isfinite(result).all(), mode
        assert (result <= 1).all(), mode
        if mode != "iof":
            mirrored = detops.box_iou(*both[::-1], mode=mode, offset=offset)
            np.testing.assert_array_equal(mirrored.T, result, err_msg=mode)
    assert (found["iou"] >= 0).all()
    assert (found["iof"] >= found["iou"] * (1 - 1e-6)).all()
    for mode, least in (("giou", -1), ("diou", -1), ("ciou", -1.5)):
        assert (found[mode] >= least).all(), mode
        assert (found[mode] <= found["iou"]).all(), mode
    assert (found["ciou"] <= found["diou"]).all()
    with np.errstate(all="ignore"):
        itself = {mode: detops.box_iou(both[0], both[0], mode=mode, aligned=True) for mode in MODES}
    assert set(itself["iou"]) <= {0, 1}
    for mode in MODES:
        np.testing.assert_array_equal(itself[mode][itself["iou"] == 1], 1, err_msg=mode)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", MODES)
def test_a_move_or_a_scale_that_is_exact_changes_nothing(mode, backend):
    rng = np.random.default_rng(2)
    a, b = (
        np.sort(rng.integers(0, 40, (count, 2, 2)), axis=1).reshape(count, 4).astype(np.float32) for count in (5, 9)
    )
    plain = detops.box_iou(a, b, mode=mode, backend=backend)
    moved = detops.box_iou(a + np.float32(2**20), b + np.float32(2**20), mode=mode, backend=backend)
    assert moved.tobytes() == plain.tobytes()
    scaled = detops.box_iou(a * np.float32(2**-20), b * np.float32(2**-20), mode=mode, backend=backend)
    assert scaled.tobytes() == plain.tobytes()


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_ends_of_the_range(backend):
    """Areas that are infinite or 0 in float32, and hulls that are too large for it."""
    a = np.array([[0, 0, 1e20, 1e20], [0, 0, 1e-23, 1e-23], [0, 0, 1, 1], [-3e38, 0, 3e38, 1]], np.float32)
    b = np.array([[3e30, 3e30, 3.1e30, 3.1e30], [0, 0, 1, 1]], np.float32)
    wanted = {"iou": [0, 1], "iof": [0, 1], "giou": [-1, 1], "diou": [-1, 1], "ciou": [-1, 1]}
    with np.errstate(all="ignore"):
        for mode, row in wanted.items():
            got = detops.box_iou(a, b, mode=mode, backend=backend)
            np.testing.assert_array_equal(got[2], row)
            far = -1 if mode in OF_DISTANCE else 0
            np.testing.assert_array_equal(got[[0, 3]], far)
            assert got[1, 0] == far
        # An infinite intersection of infinite areas.
        assert detops.box_iou(a[:1], a[:1], mode="giou", backend=backend) == -1
        # Far apart, and of aspects as unlike as can be: rounding takes nothing below the bound.
        lines = np.array([[[0, 0, 1, 0]], [[3e30, 3e30, 3e30, 3.1e30]]], np.float32)
        assert detops.box_iou(*lines, mode="ciou", backend=backend) == -1.5


@pytest.mark.parametrize("backend", BACKENDS)
def test_dtypes(backend):
    rng = np.random.default_rng(1)
    a, b = boxes_of(rng, 3), boxes_of(rng, 4)
    kinds = {
        ("float16", "float16"): "float16",
        ("float16", "float32"): "float32",
        ("float32", "float64"): "float64",
        ("float32", "int32"): "float64",
        ("uint8", "int8"): "float64",
    }
    for (one, other), wanted in kinds.items():
        x, y = (a % 100).astype(one), (b % 100).astype(other)
        got = detops.box_iou(x, y, backend=backend)
        assert got.dtype == wanted
        computed = "float64" if wanted == "float64" else "float32"
        expected = detops.box_iou(x.astype(computed), y.astype(computed), backend=backend).astype(wanted)
        np.testing.assert_array_equal(got, expected)
    assert detops.box_iou([], [], backend=backend).shape == (0, 0)
    assert detops.box_iou([], b.tolist(), backend=backend).shape == (0, 4)
    assert detops.box_iou([], [], aligned=True, backend=backend).shape == (0,)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(1, 513), (129, 512), (257, 31), (1100, 1025)])
def test_a_pair_does_not_depend_on_its_place(shape, mode):
    """Over the ends of blocks, and where the result is large enough to be written past the caches."""
    rng = np.random.default_rng(4)
    a, b = (boxes_of(rng, count).astype(np.float32) for count in shape)
    whole = detops.box_iou(a, b, mode=mode)
    for i in {0, shape[0] // 2, shape[0] - 1}:
        pairs = detops.box_iou(np.broadcast_to(a[i], b.shape), b, mode=mode, aligned=True)
        assert pairs.tobytes() == whole[i].tobytes()
    for j in {0, min(511, shape[1] - 1), shape[1] - 1}:
        assert detops.box_iou(a, b[j : j + 1], mode=mode).tobytes() == whole[:, j].tobytes()
    if mode != "ciou":
        # The same steps in the same order; only arctangents differ between libraries.
        assert detops.box_iou(a, b, mode=mode, backend="numba").tobytes() == whole.tobytes()


def test_aligned_is_known_when_compiled():
    rng = np.random.default_rng(1)
    a, b = (boxes_of(rng, 5).astype(np.float32) for _ in range(2))

    @numba.njit
    def both(a, b, aligned):
        return detops.numba.box_iou(a, b), detops.numba.box_iou(a, b, mode="giou", aligned=aligned)

    table = detops.box_iou(a, b)
    for aligned in (True, False):
        got = both(a, b, aligned)
        np.testing.assert_array_equal(got[0], table)
        np.testing.assert_array_equal(got[1], detops.box_iou(a, b, mode="giou", aligned=aligned))
    for aligned in (True, np.False_, 1, np.int8(0), False):
        got = detops.numba.box_iou(a, b, aligned=aligned)
        np.testing.assert_array_equal(got, detops.box_iou(a, b, aligned=aligned))
    for aligned in ("yes", 2, 1.0, None):
        with pytest.raises(TypingError, match=r"aligned: expected a bool"):
            detops.numba.box_iou(a, b, aligned=aligned)
