"""Box decoding and encoding, one coordinate at a time."""

import math

import numpy as np


def _by_box(array, anchors, axis):
    """Return predictions (boxes, classes, 4) and anchors (boxes, 4)."""
    array, anchors = np.asarray(array, np.float64), np.asarray(anchors, np.float64)
    from_end = axis - array.ndim if axis >= 0 else axis
    array, anchors = np.moveaxis(array, axis, -1), np.moveaxis(anchors, from_end, -1)
    anchors = np.broadcast_to(anchors, (*array.shape[:-1], 4)).reshape(-1, 4)
    return array.reshape(len(anchors), array.shape[-1] // 4, 4), anchors


def _back(result, like, axis):
    return np.moveaxis(result.reshape(np.moveaxis(like, axis, -1).shape), -1, axis)


def _exp(x):
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _center_and_size(first, second, form, offset):
    return (first, second) if form == "center" else ((first + second) / 2, second - first + offset)


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
    predictions, boxes = _by_box(box_predictions, anchors, axis)
    result = np.empty(predictions.shape)
    for n, k in np.ndindex(*predictions.shape[:2]):
        t = [float(predictions[n, k, i]) / scales[i] + means[i] for i in range(4)]
        for i in range(2):
            center, size = _center_and_size(float(boxes[n, i]), float(boxes[n, 2 + i]), anchor_form, offset)
            growth = t[2 + i]
            if lower_clip is not None and growth < lower_clip:
                growth = lower_clip
            if decode_clip is not None and growth > decode_clip:
                growth = decode_clip
            center = t[i] * size + center
            size = _exp(growth) * size - offset
            result[n, k, i] = center - size / 2
            result[n, k, 2 + i] = center + size / 2
    return _back(result, box_predictions, axis)


def encode_bbox(boxes, anchors, *, scales=(1, 1, 1, 1), means=(0, 0, 0, 0), anchor_form="corner", offset=0, axis=-1):
    subject, reference = _by_box(boxes, anchors, axis)
    result = np.empty(subject.shape)
    with np.errstate(all="ignore"):
        for n, k in np.ndindex(*subject.shape[:2]):
            for i in range(2):
                center, size = _center_and_size(subject[n, k, i], subject[n, k, 2 + i], "corner", offset)
                middle, length = _center_and_size(reference[n, i], reference[n, 2 + i], anchor_form, offset)
                shift = (center - middle) / length
                growth = np.log(size / length)
                result[n, k, i] = (shift - means[i]) * scales[i]
                result[n, k, 2 + i] = (growth - means[2 + i]) * scales[2 + i]
    return _back(result, boxes, axis)
