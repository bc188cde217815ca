# Mean and spread of many numbers, from those of their parts, and what they make of a number.
import cython

if not cython.compiled:
    from detops._core.scalar import real, sqrt


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def merged_moments(
    count: real, mean: real, spread: real, more: real, their_mean: real, their_spread: real
) -> tuple[real, real, real]:
    """Count, mean and spread (the sum of squared deviations) of two groups together: Chan, Golub and LeVeque."""
    total: real = count + more
    share: real = more / total
    apart: real = their_mean - mean
    return total, mean + apart * share, spread + their_spread + apart * apart * count * share


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def normal_factor(count: real, spread: real, epsilon: real, scale: real) -> real:
    """What a deviation from the mean is multiplied by: the variance is the biased one."""
    return scale / sqrt(spread / count + epsilon)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def normalized(x: real, mean: real, factor: real, bias: real) -> real:
    """A number after normalisation."""
    return (x - mean) * factor + bias
