"""Cases of deform_conv2d."""

import numpy as np

from tests.cases import Case

_rng = np.random.default_rng(13)


def _numbers(*shape):
    return _rng.integers(-8, 9, shape) / 4


def _arrays(x, outputs, kernel, out, *, groups=1, offset_groups=1, mask=True, bias=True, reach=2.0):
    """Return x (a shape) and all else that fits it, with offsets of up to `reach` pixels."""
    images, channels = x[:2]
    taps = offset_groups * kernel[0] * kernel[1]
    return {
        "x": _numbers(*x),
        "offset": _numbers(images, 2 * taps, *out) * reach / 2,
        "weight": _numbers(outputs, channels // groups, *kernel),
        "bias": _numbers(outputs) if bias else None,
        "mask": _rng.integers(0, 5, (images, taps, *out)) / 4 if mask else None,
    }


def _bad_offsets():
    arrays = _arrays((1, 2, 4, 5), 3, (1, 1), (4, 5), mask=False)
    bad = [np.nan, np.inf, -np.inf, 6e4, -6e4, -1.0, 5.0, 4.0, -0.5, 0.5]
    arrays["offset"][0, 0].flat[:10] = bad
    arrays["offset"][0, 1].flat[5:15] = bad
    return arrays


def _bad_values():
    """An infinite and a NaN element, at the border and inside, read from within and from without their reach."""
    arrays = _arrays((1, 2, 4, 5), 1, (1, 1), (4, 5), mask=False)
    arrays["x"][0, 0, 0, 0] = np.inf
    arrays["x"][0, 1, 2, 2] = np.nan
    arrays["weight"][:] = 1
    return arrays


def _zero_offset():
    arrays = _arrays((1, 2, 3, 4), 2, (3, 3), (3, 4), mask=False)
    return arrays | {"offset": arrays["offset"] * 0}


_CASES = [
    ("plain", _arrays((2, 3, 4, 5), 2, (2, 3), (3, 3)), {}),
    ("version 1", _arrays((2, 2, 4, 3), 2, (3, 2), (2, 2), mask=False, bias=False), {}),
    ("bias alone", _arrays((1, 2, 4, 4), 2, (2, 2), (3, 3), mask=False), {}),
    ("mask alone", _arrays((1, 2, 4, 4), 2, (2, 2), (3, 3), bias=False), {}),
    ("no offset", _zero_offset(), {"padding": 1}),
    ("stride", _arrays((1, 2, 7, 8), 3, (3, 2), (3, 3)), {"stride": (2, 3), "padding": (0, 0)}),
    ("padding", _arrays((1, 1, 4, 3), 2, (3, 3), (6, 7)), {"padding": (2, 3)}),
    ("unequal padding", _arrays((1, 1, 4, 3), 2, (3, 3), (5, 5)), {"padding": (1, 0, 2, 4)}),
    ("dilation", _arrays((1, 1, 7, 8), 2, (2, 3), (4, 6)), {"dilation": (3, 1)}),
    (
        "all at once",
        _arrays((1, 4, 9, 7), 2, (3, 2), (5, 3), groups=2, offset_groups=4),
        {"stride": (2, 2), "padding": (1, 0, 2, 1), "dilation": (1, 2), "groups": 2, "offset_groups": 4},
    ),
    ("groups", _arrays((1, 6, 3, 3), 4, (2, 2), (2, 2), groups=2), {"groups": 2}),
    ("offset groups", _arrays((1, 6, 3, 3), 3, (2, 2), (2, 2), offset_groups=3), {"offset_groups": 3}),
    (
        "groups across",
        _arrays((1, 12, 3, 3), 4, (2, 2), (2, 2), groups=4, offset_groups=3),
        {"groups": 4, "offset_groups": 3},
    ),
    ("groups read off the shapes", _arrays((1, 12, 3, 3), 4, (1, 2), (3, 2), groups=2, offset_groups=3), {}),
    (
        "one channel a group",
        _arrays((1, 5, 4, 4), 5, (2, 2), (3, 3), groups=5, offset_groups=5),
        {"groups": 5, "offset_groups": 5},
    ),
    ("a step of one image", _arrays((3, 2, 3, 3), 1, (2, 2), (2, 2)), {"im2col_step": 1}),
    ("a step that does not divide", _arrays((3, 2, 3, 3), 1, (2, 2), (2, 2)), {"im2col_step": 2}),
    ("a step of more images than there are", _arrays((3, 2, 3, 3), 1, (2, 2), (2, 2)), {"im2col_step": 9}),
    ("sizes of 1", _arrays((1, 1, 1, 1), 1, (1, 1), (1, 1)), {}),
    ("one row", _arrays((1, 3, 1, 6), 2, (1, 3), (1, 4)), {}),
    ("one column", _arrays((1, 3, 6, 1), 2, (3, 1), (4, 1)), {}),
    ("far offsets", _arrays((1, 1, 4, 4), 2, (3, 3), (4, 4), reach=8.0), {"padding": 1}),
    ("no vector width divides it", _arrays((1, 37, 1, 4), 35, (1, 3), (1, 2)), {}),
    ("more positions than a block", _arrays((1, 1, 9, 24), 1, (1, 1), (9, 24)), {}),
    ("no images", _arrays((0, 2, 4, 4), 3, (2, 2), (3, 3)), {}),
    ("no channels", _arrays((1, 0, 4, 4), 3, (2, 2), (3, 3)), {}),
    ("no outputs", _arrays((1, 2, 4, 4), 0, (2, 2), (3, 3)), {}),
    ("an empty map", _arrays((1, 2, 0, 4), 3, (2, 2), (1, 3)), {"padding": (1, 0)}),
    ("bad offsets", _bad_offsets(), {}),
    ("bad values", _bad_values(), {}),
]

CASES = [Case("deform_conv2d", name, arrays, options) for name, arrays, options in _CASES]


def _ordinary(rng: np.random.Generator, size: int) -> Case:
    side = 4 + size
    arrays = {
        "x": rng.normal(size=(2, 4, side, side)),
        "offset": rng.normal(0, 2, (2, 18, side, side)),
        "weight": rng.normal(size=(4, 4, 3, 3)),
        "bias": rng.normal(size=4),
    }
    return Case("deform_conv2d", "", arrays, {"padding": 1})


ORDINARY = {"deform_conv2d": _ordinary}
