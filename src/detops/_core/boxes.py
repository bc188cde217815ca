# How boxes are expressed relative to anchors, in the form that tensorpack, torchvision and MMDetection share.
import cython

if not cython.compiled:
    from detops._codes import AnchorForm
    from detops._core.iou import side_length
    from detops._core.scalar import exp, log, product, real, typed


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def center_and_size(first: real, second: real, form: cython.Py_ssize_t, offset: real) -> tuple[real, real]:
    """Center and size of an anchor's side, which is [first, second] or is given by these two numbers themselves."""
    half: real = typed(0.5, first)
    if form == AnchorForm.CENTER:
        return first, second
    # Halves first, so that their sum is in range where both ends are; the bits are those of half the sum.
    center: real = first * half + second * half
    # Without an offset, nothing is added: adding 0 would turn the -0 of an empty side around.
    if offset == typed(0, offset):
        return center, second - first
    return center, side_length(first, second, offset)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def decode_span(
    shift: real, growth: real, center: real, size: real, offset: real, lower_clip: real, decode_clip: real
) -> tuple[real, real]:
    """Ends of a decoded side: shift moves the center of its anchor, exp(growth) scales the size, which holds offset."""
    half: real = typed(0.5, size)
    # Not min() and max(): a NaN has to stay a NaN.
    raised: real = lower_clip if growth < lower_clip else growth
    bounded: real = decode_clip if raised > decode_clip else raised
    moved: real = shift * size + center
    reach: real = (exp(bounded) * size - offset) * half
    return moved - reach, moved + reach


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def encode_span(center: real, size: real, anchor_center: real, anchor_size: real) -> tuple[real, real]:
    """Inverse of decode_span: the shift and the growth that turn an anchor's side into one of this center and size."""
    return (center - anchor_center) / anchor_size, log(size / anchor_size)


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
