# Mean and spread of many numbers, from those of their parts, and what they make of a number.
import cython

if not cython.compiled:
    from detops._core.scalar import element, real, sqrt


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def shifted_moments(count: real, origin: real, total: real, squares: real) -> tuple[real, real]:
    """Mean and spread, the sum of squared deviations, from sums of differences from an origin and of their squares.

    The origin has to be one of the numbers: the difference below then loses no more digits than count has.
    """
    apart: real = total / count
    return origin + apart, squares - total * apart


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def merged_moments(
    count: real, mean: real, spread: real, more: real, their_mean: real, their_spread: real
) -> tuple[real, real, real]:
    """Count, mean and spread of two groups together: Chan, Golub and LeVeque."""
    total: real = count + more
    share: real = more / total
    apart: real = their_mean - mean
    return total, mean + apart * share, spread + their_spread + apart * apart * count * share


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def two_sum(a: real, b: real) -> tuple[real, real]:
    """A sum as it is rounded, and what rounding took from it: together twice the digits. Knuth's, without products."""
    near: real = a + b
    part: real = near - a
    return near, (a - (near - part)) + (b - part)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def normal_factor(count: real, spread: real, epsilon: real, scale: real) -> real:
    """Factor by which a deviation from the mean is multiplied; the variance is the biased one."""
    return scale / sqrt(spread / count + epsilon)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def normalized(x: element, mean: element, mean_low: element, factor: element, bias: element) -> element:
    """A number after normalization; the mean comes in two parts, so that numbers near it lose no digits."""
    return (x - mean - mean_low) * factor + bias
