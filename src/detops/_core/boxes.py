# How boxes are expressed relative to anchors, in the form that tensorpack, torchvision and MMDetection share.
import cython

if not cython.compiled:
    from detops._core.scalar import exp, log, product, real, typed


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def decode_span(
    shift: real, growth: real, low: real, high: real, lower_clip: real, decode_clip: real
) -> tuple[real, real]:
    """Ends of a decoded side: its anchor is [low, high], shift moves the center and exp(growth) scales the size."""
    half: real = typed(0.5, low)
    size: real = high - low
    # Not min() and max(): a NaN has to stay a NaN.
    raised: real = lower_clip if growth < lower_clip else growth
    bounded: real = decode_clip if raised > decode_clip else raised
    # Halves first, so that their sum is in range where both ends are; the bits are those of half the sum.
    center: real = shift * size + (low * half + high * half)
    reach: real = exp(bounded) * size * half
    return center - reach, center + reach


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def encode_span(low: real, high: real, anchor_low: real, anchor_high: real) -> tuple[real, real]:
    """Inverse of decode_span: the shift and the growth that turn the anchor's side into [low, high]."""
    half: real = typed(0.5, low)
    size: real = anchor_high - anchor_low
    shift: real = ((low * half + high * half) - (anchor_low * half + anchor_high * half)) / size
    return shift, log((high - low) / size)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def unscale(prediction: real, scale: real, mean: real) -> real:
    """Turn a network's prediction into the quantity that the coder works with."""
    return prediction / scale + mean


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def unscale_by_inverse(prediction: real, inverse: real, mean: real) -> real:
    """Do the same with the inverse of a scale that is a power of two: quicker, and equal to the bit."""
    return product(prediction, inverse) + mean


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def rescale(quantity: real, scale: real, mean: real) -> real:
    """Inverse of unscale."""
    return (quantity - mean) * scale
