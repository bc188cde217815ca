"""box_iou_rotated: errors, values by hand, what holds for all boxes, types, blocks and threads."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detops
from detops.testing.arguments import array
from detops.testing.families import rotated_boxes
from tests.cases import rotated_boxes_of
from tests.oracle import box_iou_rotated as naive

BACKENDS = ("cython", "numba", "cuda")
Z = np.zeros((3, 5))
PI = math.pi


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((Z[:, :4], Z), ValueError, "boxes_a: expected shape (num_a, 5), got (3, 4)"),
        ((Z, Z[0]), ValueError, "boxes_b: expected shape (num_b, 5), got (5,)"),
        ((Z, Z[:2], {"aligned": True}), ValueError, "boxes_b: expected shape (3, 5), got (2, 5)"),
        ((Z, Z, {"clockwise": "no"}), TypeError, "clockwise: expected a bool, got 'no'"),
        ((Z, Z, {"mode": "giou"}), ValueError, "mode: expected one of 'iou', 'iof', got 'giou'"),
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
        detops.box_iou_rotated(*both, **options)
    assert str(caught.value) == message


SQUARE, LINE = (0, 0, 2, 2, 0), (0, 0, 2, 1e-4, 0)
OCTAGON = 8 * (math.sqrt(2) - 1)
BY_HAND = [
    # Equal, whatever the turn; the same by a quarter turn with the sides exchanged.
    (SQUARE, SQUARE, 1),
    ((3, 4, 5, 6, 1), (3, 4, 5, 6, 1 + 6 * PI), 1),
    ((3, 4, 5, 6, 1), (3, 4, 6, 5, 1 + PI / 2), 1),
    ((3, 4, 5, 6, 1), (3, 4, 5, 6, 1 - PI), 1),
    # What two squares share that are an eighth apart is an octagon.
    (SQUARE, (0, 0, 2, 2, PI / 4), OCTAGON / (8 - OCTAGON)),
    # One in the other, half of it apart, a cross.
    (SQUARE, (0.1, 0.1, 1, 0.5, 1), 0.125),
    (SQUARE, (1, 0, 2, 2, PI), 1 / 3),
    ((0, 0, 8, 2, 1), (0, 0, 2, 8, 1), 4 / 28),
    # Touching: a side, a corner at a corner, a corner at a side; apart, but not their bounds.
    (SQUARE, (2, 0, 2, 2, 0), 0),
    (SQUARE, (2, 2, 2, 2, 0), 0),
    (SQUARE, (1 + math.sqrt(2), 0, 2, 2, PI / 4), 0),
    ((0, 0, 20, 1, PI / 4), (5, -5, 20, 1, PI / 4), 0),
    # Thin, and nearly parallel: what they share is (1e-4)**2 / sin, in a rhombus.
    (LINE, (0, 0, 2, 1e-4, 0.1), 1e-8 / math.sin(0.1) / (4e-4 - 1e-8 / math.sin(0.1))),
    (LINE, (0, 0.5e-4, 2, 1e-4, 1e-13), 1 / 3),
    # No area, inside out, NaN, infinite: nowhere.
    *[(SQUARE, (0, 0, *rest), 0) for rest in ((0, 2, 0), (-2, 2, 0), (-2, -2, 0), (2, 2, math.nan), (2, math.inf, 0))],
    ((math.nan, 0, 2, 2, 0), SQUARE, 0),
    ((0, -math.inf, 2, 2, 0), SQUARE, 0),
    ((0, 0, 2, 2, math.inf), SQUARE, 0),
    ((0, 0, 1e-200, 1e-200, 0), (0, 0, 1e-200, 1e-200, 0), 0),
    ((1e308, 0, 1, 1, 0.5), (-1e308, 0, 1, 1, 0.5), 0),
]


@pytest.mark.parametrize("backend", BACKENDS)
def test_by_hand(backend):
    a, b = (np.array([row[place] for row in BY_HAND], float) for place in (0, 1))
    with np.errstate(all="ignore"):
        for one, other in ((a, b), (b, a)):
            got = detops.box_iou_rotated(one, other, aligned=True, backend=backend)
            np.testing.assert_allclose(got, [row[2] for row in BY_HAND], rtol=0, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_way_an_angle_turns(backend):
    """y points down in an image: what lies and is turned clockwise goes from the upper left to the lower right."""
    box, corner = np.array([[0, 0, 10, 1, PI / 4]]), np.array([[3, 3, 1, 1, 0], [3, -3, 1, 1, 0.0]])
    for clockwise, inside in ((True, 0), (False, 1)):
        got = detops.box_iou_rotated(corner, box, mode="iof", clockwise=clockwise, backend=backend)[:, 0]
        assert got[inside] > 0.9
        assert got[1 - inside] == 0


ODD = [np.nan, np.inf, -np.inf, 1e30, -1e30, 1e-30, 3e38]
ANY = st.sampled_from(["float32", "float64"]).flatmap(
    lambda dtype: st.tuples(*[st.one_of(array(dtype, (6, 5), -9, 9, parts=2, odd=ODD), rotated_boxes(dtype, (6,)))] * 2)
)


@given(both=ANY)
def test_what_holds_for_all_boxes(both):
    with np.errstate(all="ignore"):
        iou, iof = (detops.box_iou_rotated(*both, mode=mode) for mode in ("iou", "iof"))
        mirrored = detops.box_iou_rotated(*both[::-1])
        itself = detops.box_iou_rotated(both[0], both[0], aligned=True)
    for result in (iou, iof):
        assert ((result >= 0) & (result <= 1)).all()
    np.testing.assert_array_equal(mirrored.T, iou)
    assert (iof >= iou * (1 - 1e-6)).all()
    assert set(itself) <= {0, 1}


def kinds_of_pairs(rng, count):
    """Pairs of boxes of ordinary sizes; equal but for a little; thin; at the ends of float32's whole numbers."""
    plain = rotated_boxes_of(rng, 2 * count, 60).reshape(2, count, 5)
    near = np.stack([plain[0], plain[0] + rng.normal(0, 1e-6, (count, 5))])
    thin = plain * np.array([0.1, 0.1, 20, 0.01, 0.01])
    far = plain + np.array([2.0**24, -(2.0**24), 0, 0, 0])
    return {"plain": plain, "near": near, "thin": thin, "far": far}


@pytest.mark.parametrize("backend", ["cython", "numba"])
def test_float32_says_what_float64_does(backend):
    """A million pairs, of which the naive oracle takes some: no IoU is more than a rounding of float32 off."""
    count = 250_000 if backend == "cython" else 20_000
    for name, (a, b) in kinds_of_pairs(np.random.default_rng(3), count).items():
        single = a.astype("f"), b.astype("f")
        double = [boxes.astype("d") for boxes in single]
        for mode in ("iou", "iof"):
            got = detops.box_iou_rotated(*single, mode=mode, aligned=True, backend=backend)
            wanted = detops.box_iou_rotated(*double, mode=mode, aligned=True, backend=backend)
            assert np.abs(got - wanted).max() < 1e-7, (name, mode)
            assert np.count_nonzero(wanted > 0.01) > count / 100, name
            some = [naive.pair(*pair, mode) for pair in zip(*(boxes[:300].tolist() for boxes in double), strict=True)]
            np.testing.assert_allclose(wanted[:300], some, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("backend", BACKENDS)
def test_dtypes(backend):
    rng = np.random.default_rng(1)
    a, b = rotated_boxes_of(rng, 3, 20), rotated_boxes_of(rng, 4, 20)
    kinds = {
        ("float16", "float16"): "float16",
        ("float16", "float32"): "float32",
        ("float32", "float64"): "float64",
        ("float32", "int32"): "float64",
    }
    for (one, other), wanted in kinds.items():
        x, y = a.astype(one), b.astype(other)
        got = detops.box_iou_rotated(x, y, backend=backend)
        assert got.dtype == wanted
        assert got.any()
        expected = detops.box_iou_rotated(x.astype(float), y.astype(float), backend=backend).astype(wanted)
        np.testing.assert_array_equal(got, expected)
    assert detops.box_iou_rotated([], [], backend=backend).shape == (0, 0)
    assert detops.box_iou_rotated([], b.tolist(), backend=backend).shape == (0, 4)
    assert detops.box_iou_rotated([], [], aligned=True, backend=backend).shape == (0,)


@pytest.mark.parametrize("mode", ["iou", "iof"])
@pytest.mark.parametrize("shape", [(1, 257), (129, 256), (257, 31)])
def test_a_pair_does_not_depend_on_its_place(shape, mode):
    """Over the ends of blocks."""
    rng = np.random.default_rng(4)
    a, b = (rotated_boxes_of(rng, count, 40) for count in shape)
    whole = detops.box_iou_rotated(a, b, mode=mode)
    for i in {0, shape[0] // 2, shape[0] - 1}:
        pairs = detops.box_iou_rotated(np.broadcast_to(a[i], b.shape), b, mode=mode, aligned=True)
        assert pairs.tobytes() == whole[i].tobytes()
    for j in {0, min(255, shape[1] - 1), shape[1] - 1}:
        assert detops.box_iou_rotated(a, b[j : j + 1], mode=mode).tobytes() == whole[:, j].tobytes()
