"""decode_bbox and encode_bbox inside compiled code."""

import functools

import numpy as np

from detops._codes import AnchorForm, words
from detops._numba.boxes import decode_loop, encode_loop
from detops.numba import _kinds
from detops.numba._kinds import inlined
from detops.numba._operator import operator

FORMS = words(AnchorForm)


class _Anchored:
    """Boxes, or predictions of them, and anchors, checked, and functions for compiled code that make them ready."""

    def __init__(self, name, subject, anchors, scales, means, anchor_form, offset, axis):
        subject, anchors = _kinds.array(name, subject), _kinds.array("anchors", anchors)
        dtype = (_kinds.floats if name == "box_predictions" else _kinds.coordinates)(name, subject)
        _kinds.coordinates("anchors", anchors)
        if not subject.ndim:
            _kinds.refuse(name, "shape (..., 4)", "an array of 0 axes")
        if not anchors.ndim:
            _kinds.refuse("anchors", "shape (..., 4)", "an array of 0 axes")
        self.element = dtype.type
        self.layout = _layout(name, subject.ndim, anchors.ndim, _kinds.integer("axis", axis))
        self.by_group = _by_group(_kinds.cast(subject, dtype)), _by_group(_kinds.cast(anchors, dtype))
        self.scales, self.means = _scales(scales, dtype), _kinds.four_reals("means", means, dtype)
        self.form = FORMS[_kinds.text("anchor_form", anchor_form, FORMS)]
        self.offset = _kinds.integer("offset", offset, 0, 1)


def _layout(name, ndim, anchor_ndim, whole):
    """Return a function for how many boxes in a row share an anchor, and how many have coordinates side by side."""
    no_axis = f"axis: expected an axis from {-ndim} to {ndim - 1}"
    no_boxes = f"{name}: expected shape (..., 4), (..., 4 * num_classes), or with 4 coordinates on the axis"
    no_anchors = f"anchors: expected the shape of {name}, or its last axes, with 4 coordinates"
    missing = ndim - anchor_ndim

    @inlined
    def layout(shape, anchors, axis):
        position = whole(axis)
        if position < -ndim or position >= ndim:
            raise ValueError(no_axis)
        position = position + ndim if position < 0 else position
        if shape[position] % 4 != 0 or (shape[position] != 4 and position != ndim - 1):
            raise ValueError(no_boxes)
        fits = 0 <= missing <= position
        leading = True
        inner = 1
        for i in range(max(missing, 0), ndim):
            length = anchors[i - missing]
            leading = leading and i < position and length == 1
            if not leading and length != (4 if i == position else shape[i]):
                fits = False
            if i > position:
                inner *= shape[i]
        if not fits:
            raise ValueError(no_anchors)
        return max(shape[position] // 4, 1), max(inner, 1)

    return layout


def _by_group(cast):
    """Return a function that makes coordinates (groups, 4, inner)."""
    return inlined(lambda array, inner: cast(array).reshape((array.size // (4 * inner), 4, inner)))


def _scales(got, dtype):
    """Return a function for four numbers other than 0."""
    numbers = _kinds.four_reals("scales", got, dtype)

    @inlined
    def scales(value):
        for number in value:
            if number == 0:
                raise ValueError("scales: expected numbers other than 0")
        return numbers(value)

    return scales


def _bound(name, got, otherwise, element):
    """Return a function for a bound, which is infinite where there is none."""
    if _kinds.absent(got):
        return inlined(lambda value: element(otherwise))
    checked = _kinds.real(name, got)
    return inlined(lambda value: element(otherwise) if value is None else element(checked(value)))


@functools.partial(operator, constants=("anchor_form",))
def decode_bbox(
    box_predictions,
    anchors,
    *,
    decode_clip=None,
    lower_clip=None,
    scales=(1, 1, 1, 1),
    means=(0, 0, 0, 0),
    anchor_form="corner",
    offset=0,
    axis=-1,
):
    """``detops.decode_bbox`` for compiled code, which must know `anchor_form`."""
    given = _Anchored("box_predictions", box_predictions, anchors, scales, means, anchor_form, offset, axis)
    layout, (predicted, anchored), divisors, terms = given.layout, given.by_group, given.scales, given.means
    element, form, added = given.element, given.form, given.offset
    low = _bound("lower_clip", lower_clip, -np.inf, element)
    high = _bound("decode_clip", decode_clip, np.inf, element)

    def decode_bbox(box_predictions, anchors, decode_clip, lower_clip, scales, means, anchor_form, offset, axis):
        classes, inner = layout(box_predictions.shape, anchors.shape, axis)
        numbers = low(lower_clip), high(decode_clip), divisors(scales), terms(means), form, element(added(offset))
        out = np.empty(box_predictions.shape, element)
        if out.size > 0:
            t, a = predicted(box_predictions, inner), anchored(anchors, inner)
            decode_loop(0, out.size // 4, t, a, *numbers, classes, out.reshape(t.shape))
        return out

    return decode_bbox


@functools.partial(operator, constants=("anchor_form",))
def encode_bbox(boxes, anchors, *, scales=(1, 1, 1, 1), means=(0, 0, 0, 0), anchor_form="corner", offset=0, axis=-1):
    """``detops.encode_bbox`` for compiled code, which must know `anchor_form`."""
    given = _Anchored("boxes", boxes, anchors, scales, means, anchor_form, offset, axis)
    layout, (boxed, anchored), factors, terms = given.layout, given.by_group, given.scales, given.means
    element, form, added = given.element, given.form, given.offset

    def encode_bbox(boxes, anchors, scales, means, anchor_form, offset, axis):
        classes, inner = layout(boxes.shape, anchors.shape, axis)
        numbers = factors(scales), terms(means), form, element(added(offset))
        out = np.empty(boxes.shape, element)
        if out.size > 0:
            b, a = boxed(boxes, inner), anchored(anchors, inner)
            encode_loop(0, out.size // 4, b, a, *numbers, classes, out.reshape(b.shape))
        return out

    return encode_bbox
