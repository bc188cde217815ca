"""Box decoding and encoding over (groups, 4, inner) in memory: an inner of 1 is (boxes, 4).

Where there are fewer groups of anchors than of boxes, the first one follows the last.
"""

from detops._codes import AnchorForm
from detops._core.boxes import center_and_size, decode_span, encode_span, rescale, unscale
from detops._numba.parallel import jit, parallel_for

CORNER = AnchorForm.CORNER.value


@jit
def decode_loop(begin, end, t, anchors, lower_clip, decode_clip, scales, means, form, offset, classes, out):
    """One item is one box; arrays are (groups, 4, inner)."""
    inner = out.shape[2]
    for i in range(begin, end):
        g, k = divmod(i, inner)
        ag, ak = divmod(i // classes, inner)
        if ag >= anchors.shape[0]:
            ag %= anchors.shape[0]
        for side in range(2):
            center, size = center_and_size(anchors[ag, side, ak], anchors[ag, 2 + side, ak], form, offset)
            low, high = decode_span(
                unscale(t[g, side, k], scales[side], means[side]),
                unscale(t[g, 2 + side, k], scales[2 + side], means[2 + side]),
                center,
                size,
                offset,
                lower_clip,
                decode_clip,
            )
            out[g, side, k] = low
            out[g, 2 + side, k] = high


@jit
def encode_loop(begin, end, boxes, anchors, scales, means, form, offset, classes, out):
    """One item is one box; arrays are (groups, 4, inner)."""
    inner = out.shape[2]
    for i in range(begin, end):
        g, k = divmod(i, inner)
        ag, ak = divmod(i // classes, inner)
        if ag >= anchors.shape[0]:
            ag %= anchors.shape[0]
        for side in range(2):
            center, size = center_and_size(boxes[g, side, k], boxes[g, 2 + side, k], CORNER, offset)
            anchor_center, anchor_size = center_and_size(anchors[ag, side, ak], anchors[ag, 2 + side, ak], form, offset)
            shift, growth = encode_span(center, size, anchor_center, anchor_size)
            out[g, side, k] = rescale(shift, scales[side], means[side])
            out[g, 2 + side, k] = rescale(growth, scales[2 + side], means[2 + side])


def by_group(inner, *arrays):
    """Views of arrays as (groups, 4, inner)."""
    return tuple(array.reshape((array.size // (4 * inner), 4, inner)) for array in arrays)


def decode_bbox(box_predictions, anchors, lower_clip, decode_clip, scales, means, form, offset, classes, inner, out):
    """Kernel of decode_bbox."""
    real = out.dtype.type
    t, a, o = by_group(inner, box_predictions, anchors, out)
    numbers = tuple(tuple(map(real, four)) for four in (scales, means))
    reads = (t, a, real(lower_clip), real(decode_clip), *numbers, form, real(offset), classes)
    parallel_for(decode_loop, out.size // 4, 8192, reads, o)


def encode_bbox(boxes, anchors, scales, means, form, offset, classes, inner, out):
    """Kernel of encode_bbox."""
    real = out.dtype.type
    b, a, o = by_group(inner, boxes, anchors, out)
    numbers = tuple(tuple(map(real, four)) for four in (scales, means))
    parallel_for(encode_loop, out.size // 4, 8192, (b, a, *numbers, form, real(offset), classes), o)
