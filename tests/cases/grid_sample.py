"""Cases of grid_sample."""

import itertools

import numpy as np

from tests.cases import Case

_rng = np.random.default_rng(11)
_MODES = ("linear", "nearest", "cubic")
_BORDERS = ("zeros", "border", "reflection")


def _map(*shape):
    return _rng.integers(-8, 9, shape) / 4


def _grid(*shape):
    """Multiples of 1/32, far beyond the map and often halfway between elements: exact in every dtype."""
    return _rng.integers(-80, 81, shape) / 32


# Sizes and grid are such that positions are exact, so that ties are ties in every dtype.
_X4, _GRID4 = _map(2, 3, 4, 8), _grid(2, 3, 5, 2)
_X5, _GRID5 = _map(1, 2, 4, 2, 8), _grid(1, 2, 3, 4, 3)
_ODD, _GRID_ODD = _map(1, 2, 5, 3), _grid(1, 2, 9, 2)
_BAD = np.array([np.nan, np.inf, -np.inf, 0.25, 6e4, -6e4])
_GRID_BAD = np.stack(np.meshgrid(_BAD, _BAD), -1)[None]
_GRID_BAD3 = np.stack(np.meshgrid(_BAD, _BAD, _BAD[:4]), -1)[None]
_INFINITE = _map(1, 1, 3, 3)
_INFINITE[0, 0, 0, 0] = np.inf

CASES = []


def _case(name, x, grid, **options):
    # A nearest element is copied, not computed.
    CASES.append(Case("grid_sample", name, {"x": x, "grid": grid}, options, exact=options.get("mode") == "nearest"))


for _mode, _border, _align in itertools.product(_MODES, _BORDERS, (False, True)):
    _options = {"mode": _mode, "padding_mode": _border, "align_corners": _align}
    _name = f"{_mode} {_border}{' aligned' if _align else ''}"
    _case(_name, _X4, _GRID4, **_options)
    _case(f"{_name}, sizes of 1", _map(1, 2, 1, 4), _grid(1, 1, 6, 2), **_options)
    _case(f"{_name}, one element", _map(1, 1, 1, 1), _grid(1, 1, 5, 2), **_options)
    # A huge position is folded in the precision that it has, so there the map is constant.
    _case(
        f"{_name}, bad points",
        np.ones((1, 1, 4, 2)) * 3 if _border == "reflection" else _map(1, 1, 4, 2),
        _GRID_BAD,
        **_options,
    )
    if _mode != "nearest":
        _case(f"{_name}, odd sizes", _ODD, _GRID_ODD, **_options)
    _case(f"{_name} 5-D", _X5, _GRID5, **_options)
    _case(f"{_name} 5-D, sizes of 1", _map(1, 1, 1, 2, 1), _grid(1, 2, 1, 3, 3), **_options)
    _case(f"{_name} 5-D, bad points", np.ones((1, 1, 2, 4, 2)), _GRID_BAD3, **_options)
_case("defaults", _X4, _GRID4)
_case("torch's bilinear", _X4, _GRID4, mode="bilinear")
_case("torch's bicubic", _X4, _GRID4, mode="bicubic")
_case("an infinite element", _INFINITE, np.array([-1.5, -0.8, -0.5, 0.0, 0.9]).repeat(2).reshape(1, 1, 5, 2))
_case("no images", np.empty((0, 2, 3, 3)), np.empty((0, 2, 2, 2)))
_case("no channels", np.empty((1, 0, 3, 3)), np.empty((1, 2, 2, 2)))
_case("no points", _X4, np.empty((2, 0, 5, 2)), padding_mode="border")
_case("an empty map", np.empty((1, 2, 0, 3)), np.zeros((1, 2, 2, 2)))
_case("more points than a tile", _map(1, 1, 4, 4), _grid(1, 70, 37, 2))
_case("more channels than a block", _map(1, 37, 3, 4), _grid(1, 2, 2, 2))


def _ordinary(rng: np.random.Generator, size: int) -> Case:
    arrays = {"x": rng.normal(size=(2, 3, 12, 14)), "grid": rng.uniform(-1.2, 1.2, (2, 4 * size, 8, 2))}
    return Case("grid_sample", "", arrays)


ORDINARY = {"grid_sample": _ordinary}
