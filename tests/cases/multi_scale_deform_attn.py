"""Cases of multi_scale_deform_attn."""

import numpy as np

from tests.cases import Case

_rng = np.random.default_rng(17)


def _arrays(images, queries, heads, channels, shapes, points, *, gap=0, reach=0.25):
    """Return arrays for maps of these shapes, `gap` keys apart; points lie up to `reach` beyond the maps."""
    ends = np.cumsum([height * width + gap for height, width in shapes])
    starts = ends - [height * width for height, width in shapes]
    around = (images, queries, heads, len(shapes), points)
    keys = int(ends[-1]) if shapes else 1
    return {
        "value": _rng.integers(-8, 9, (images, keys, heads, channels)) / 4,
        "spatial_shapes": np.array(shapes, np.int64).reshape(-1, 2),
        "level_start_index": starts.astype(np.int64),
        "sampling_locations": _rng.integers(int(-16 * reach), int(16 + 16 * reach) + 1, (*around, 2)) / 16,
        "attention_weights": _rng.integers(0, 9, around) / 8,
    }


def _bad_locations():
    arrays = _arrays(1, 6, 1, 2, [(3, 4)], 2)
    bad = [np.nan, np.inf, -np.inf, 6e4, -6e4, 0.0, 1.0, -0.125, 1.125]
    arrays["sampling_locations"][0, :, 0, 0, 0, 0].flat[:6] = bad[:6]
    arrays["sampling_locations"][0, :, 0, 0, 1, 1].flat[:6] = bad[3:]
    return arrays


def _bad_values():
    arrays = _arrays(1, 8, 2, 3, [(2, 2), (3, 3)], 2)
    arrays["value"][0, 0, 0, 0] = np.inf
    arrays["value"][0, 6, 1, 1] = np.nan
    arrays["attention_weights"][0, 0, 0, 0, 0] = np.nan
    return arrays


def _levels_in_any_order():
    """Maps that are not in the order of their keys, and one that two levels share."""
    arrays = _arrays(1, 4, 2, 3, [(2, 3), (1, 4), (2, 2)], 2)
    arrays["spatial_shapes"] = np.array([[2, 2], [2, 3], [3, 2]], np.int32)
    arrays["level_start_index"] = np.array([10, 0, 0], np.uint8)
    return arrays


_CASES = [
    ("plain", _arrays(2, 5, 2, 3, [(4, 5), (2, 3)], 3)),
    ("one level, one point", _arrays(1, 4, 1, 1, [(3, 3)], 1)),
    ("four levels", _arrays(1, 3, 3, 4, [(8, 9), (4, 5), (2, 3), (1, 2)], 4)),
    ("sizes of 1", _arrays(1, 5, 1, 2, [(1, 1), (1, 4), (4, 1)], 2)),
    ("blocks of channels, and more", _arrays(1, 2, 2, 37, [(3, 4)], 2)),
    ("a block of channels", _arrays(1, 2, 2, 32, [(3, 4)], 2)),
    ("more samples than are found together", _arrays(1, 2, 1, 3, [(3, 4), (2, 2), (4, 4)], 50)),
    ("keys between the maps", _arrays(1, 4, 2, 3, [(2, 2), (3, 2)], 2, gap=3)),
    ("levels in any order", _levels_in_any_order()),
    ("far points", _arrays(1, 6, 1, 2, [(3, 4)], 3, reach=3.0)),
    ("bad locations", _bad_locations()),
    ("bad values", _bad_values()),
    ("an empty map", _arrays(1, 4, 1, 2, [(0, 3), (2, 0), (2, 2)], 2)),
    ("no levels", _arrays(1, 4, 1, 2, [], 2)),
    ("no points", _arrays(1, 4, 1, 2, [(2, 2)], 0)),
    ("no queries", _arrays(2, 0, 1, 2, [(2, 2)], 2)),
    ("no images", _arrays(0, 3, 1, 2, [(2, 2)], 2)),
    ("no channels", _arrays(1, 3, 2, 0, [(2, 2)], 2)),
    ("no heads", _arrays(1, 3, 0, 2, [(2, 2)], 2)),
]

CASES = [
    Case("multi_scale_deform_attn", name, arrays, fixed=("spatial_shapes", "level_start_index"))
    for name, arrays in _CASES
]


def _ordinary(rng: np.random.Generator, size: int) -> Case:
    around = (2, 3 * size, 2, 2, 3)
    arrays = {
        "value": rng.normal(size=(2, 60, 2, 5)),
        "spatial_shapes": np.array([[6, 8], [3, 4]]),
        "level_start_index": np.array([0, 48]),
        "sampling_locations": rng.uniform(-0.2, 1.2, (*around, 2)),
        "attention_weights": rng.uniform(size=around),
    }
    return Case("multi_scale_deform_attn", "", arrays, fixed=("spatial_shapes", "level_start_index"))


ORDINARY = {"multi_scale_deform_attn": _ordinary}
