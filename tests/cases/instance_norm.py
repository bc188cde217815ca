"""Cases of instance_norm."""

import numpy as np

from tests.cases import Case

_rng = np.random.default_rng(37)
_X = _rng.integers(-8, 9, (2, 3, 4, 5)) / 4
_SCALE, _BIAS = np.array([1.5, -2.0, 0.0]), np.array([0.25, 0.0, -1.0])
_ODD = _X.copy()
_ODD[0, 1, 2, 3], _ODD[1, 0, 0, 0], _ODD[1, 2, 1, 1] = np.nan, np.inf, -np.inf

_CASES = [
    ("plain", _X, None, None, {}),
    ("scale", _X, _SCALE, None, {}),
    ("bias", _X, None, _BIAS, {}),
    ("scale and bias", _X, _SCALE, _BIAS, {"epsilon": 0.1}),
    ("one spatial axis", _X.reshape(2, 3, 20), _SCALE, _BIAS, {}),
    ("three spatial axes", _X.reshape(2, 3, 2, 2, 5), _SCALE, _BIAS, {}),
    ("one element", _X[:, :, :1, :1], _SCALE, _BIAS, {}),
    ("equal elements", np.full((1, 3, 5, 7), 100.125), _SCALE, _BIAS, {}),
    ("more than a block", _rng.integers(-8, 9, (1, 2, 3, 701)) / 4, None, None, {}),
    ("NaN and infinities", _ODD, _SCALE, _BIAS, {}),
    ("no images", _X[:0], _SCALE, _BIAS, {}),
    ("no channels", _X[:, :0], _SCALE[:0], _BIAS[:0], {}),
    ("no elements", _X[..., :0], _SCALE, _BIAS, {}),
]

CASES = [
    Case("instance_norm", name, {"x": x, "scale": scale, "bias": bias}, options)
    for name, x, scale, bias, options in _CASES
]


def _ordinary(rng: np.random.Generator, size: int) -> Case:
    arrays = {"x": rng.normal(3, 2, (2, size, 9, 11)), "scale": rng.normal(size=size), "bias": rng.normal(size=size)}
    return Case("instance_norm", "", arrays)


ORDINARY = {"instance_norm": _ordinary}
