"""Instance normalization, one channel at a time, with sums that do not round."""

import math

import numpy as np


def instance_norm(x, scale=None, bias=None, *, epsilon=1e-5):
    x = np.asarray(x, np.float64)
    result = np.empty(x.shape)
    for n, c in np.ndindex(*x.shape[:2]):
        numbers = x[n, c].ravel().tolist()
        if not all(map(math.isfinite, numbers)):
            result[n, c] = math.nan
            continue
        if not numbers:
            continue
        mean = math.fsum(numbers) / len(numbers)
        variance = math.fsum((number - mean) ** 2 for number in numbers) / len(numbers)
        factor = 1.0 if scale is None else float(scale[c])
        shift = 0.0 if bias is None else float(bias[c])
        result[n, c] = (x[n, c] - mean) / math.sqrt(variance + epsilon) * factor + shift
    return result
