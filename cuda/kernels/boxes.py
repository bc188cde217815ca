"""Box decoding and encoding over flat coordinates: one item is one box."""

from numba.extending import register_jitable

from detops._codes import AnchorForm
from detops._core.boxes import center_and_size, decode_span, encode_span, rescale, unscale
from detops._cuda.device import cuda, jit, launch

CORNER = AnchorForm.CORNER.value


@register_jitable
def first_coordinate(box, inner, size):
    """Index of a box's first coordinate in a flat (groups, 4, inner) of this size; after the last group they repeat."""
    group, position = box // inner, box % inner
    groups = size // (4 * inner)
    if group >= groups:
        group %= groups
    return group * 4 * inner + position


@jit
def decode(t, anchors, lower_clip, decode_clip, scales, means, form, offset, classes, inner, out):
    """Arrays are (groups, 4, inner), flat."""
    for i in range(cuda.grid(1), out.size // 4, cuda.gridsize(1)):
        for side in range(2):
            near = first_coordinate(i, inner, out.size) + side * inner
            far = near + 2 * inner
            anchor = first_coordinate(i // classes, inner, anchors.size) + side * inner
            center, size = center_and_size(anchors[anchor], anchors[anchor + 2 * inner], form, offset)
            low, high = decode_span(
                unscale(t[near], scales[side], means[side]),
                unscale(t[far], scales[2 + side], means[2 + side]),
                center,
                size,
                offset,
                lower_clip,
                decode_clip,
            )
            out[near] = low
            out[far] = high


@jit
def encode(boxes, anchors, scales, means, form, offset, classes, inner, out):
    """Arrays are (groups, 4, inner), flat."""
    for i in range(cuda.grid(1), out.size // 4, cuda.gridsize(1)):
        for side in range(2):
            near = first_coordinate(i, inner, out.size) + side * inner
            far = near + 2 * inner
            anchor = first_coordinate(i // classes, inner, anchors.size) + side * inner
            center, size = center_and_size(boxes[near], boxes[far], CORNER, offset)
            anchor_center, anchor_size = center_and_size(anchors[anchor], anchors[anchor + 2 * inner], form, offset)
            shift, growth = encode_span(center, size, anchor_center, anchor_size)
            out[near] = rescale(shift, scales[side], means[side])
            out[far] = rescale(growth, scales[2 + side], means[2 + side])


def _launch(kernel, subject, anchors, attributes, scales, means, form, offset, classes, inner, out):
    real = out.dtype.type
    count = out.size // 4
    numbers = tuple(tuple(real(number) for number in four) for four in (scales, means))
    flat = tuple(array.reshape(array.size) for array in (subject, anchors, out))
    launch(kernel, count, *flat[:2], *map(real, attributes), *numbers, form, real(offset), classes, inner, flat[2])


def decode_bbox(box_predictions, anchors, lower_clip, decode_clip, scales, means, form, offset, classes, inner, out):
    """Kernel of decode_bbox."""
    _launch(
        decode, box_predictions, anchors, (lower_clip, decode_clip), scales, means, form, offset, classes, inner, out
    )


def encode_bbox(boxes, anchors, scales, means, form, offset, classes, inner, out):
    """Kernel of encode_bbox."""
    _launch(encode, boxes, anchors, (), scales, means, form, offset, classes, inner, out)
