"""Writes graphs as TensorFlow's detectors have them, from their published formulas; TensorFlow must be installed.

`python -m tests.graph.make_tensorflow FOLDER` writes a frozen GraphDef for each, and what it gives for random inputs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

CLIP = np.log(1333 / 16.0)
NUM_ANCHORS, NUM_CLASSES, FEATURES = 3, 5, 9


def _decode_bbox_target(tf: Any, box_predictions: Any, anchors: Any) -> Any:
    """Decode as tensorpack does."""
    with tf.name_scope("decode_bbox_target"):
        orig_shape = tf.shape(anchors)
        predictions = tf.reshape(box_predictions, (-1, 2, 2))
        shift, growth = tf.split(predictions, 2, axis=1)
        corners = tf.reshape(anchors, (-1, 2, 2))
        first, last = tf.split(corners, 2, axis=1)
        size = last - first
        center = (last + first) * 0.5
        grown = tf.exp(tf.minimum(growth, CLIP)) * size
        moved = shift * size + center
        low, high = moved - grown * 0.5, moved + grown * 0.5
        return tf.reshape(tf.concat([low, high], axis=-2), orig_shape)


def _table(random: np.random.Generator, *shape: int) -> Any:
    values = random.uniform(0, 200, (*shape, 4)).astype(np.float32)
    values[..., 2:] = values[..., :2] + random.uniform(1, 90, values[..., 2:].shape)
    return values


def tensorpack_rpn(tf: Any, random: np.random.Generator) -> Any:
    """A region proposal head: constant anchors, narrowed to the feature map."""
    features = tf.placeholder(tf.float32, (1, 8, None, None), "features")
    all_anchors = tf.constant(_table(random, FEATURES, FEATURES, NUM_ANCHORS), name="all_anchors")
    with tf.name_scope("rpn"):
        weights = tf.constant(random.normal(0, 0.4, (1, 1, 8, NUM_ANCHORS * 4)).astype(np.float32))
        nhwc = tf.nn.conv2d(tf.transpose(features, [0, 2, 3, 1]), weights, 1, "SAME")  # NCHW needs a GPU
        box_logits = tf.transpose(nhwc, [0, 3, 1, 2])
        shape = tf.shape(box_logits)
        box_logits = tf.transpose(box_logits, [0, 2, 3, 1])
        box_logits = tf.reshape(box_logits, tf.stack([shape[2], shape[3], NUM_ANCHORS, 4]))
    with tf.name_scope("narrow_to"):
        shape2d = tf.shape(features)[2:]
        boxes = tf.slice(all_anchors, [0, 0, 0, 0], tf.concat([shape2d, [-1, -1]], axis=0))
    decoded = _decode_bbox_target(tf, box_logits, boxes)
    return tf.identity(tf.reshape(decoded, [-1, 4]), "boxes"), {
        "features": random.normal(0, 1, (1, 8, 5, 7)).astype(np.float32)
    }


def tensorpack_frcnn(tf: Any, random: np.random.Generator) -> Any:
    """A Fast R-CNN head: proposals tiled over the classes, and regression weights."""
    features = tf.placeholder(tf.float32, (None, 8), "features")
    proposals = tf.placeholder(tf.float32, (None, 4), "proposals")
    with tf.name_scope("fastrcnn"):
        weights = tf.constant(random.normal(0, 0.4, (8, NUM_CLASSES * 4)).astype(np.float32))
        box_logits = tf.reshape(tf.matmul(features, weights), (-1, NUM_CLASSES, 4))
        anchors = tf.tile(tf.expand_dims(proposals, 1), [1, NUM_CLASSES, 1])
        decoded = _decode_bbox_target(tf, box_logits / tf.constant([10.0, 10.0, 5.0, 5.0]), anchors)
    feeds = {"features": random.normal(0, 1, (6, 8)).astype(np.float32), "proposals": _table(random, 6)}
    return tf.identity(decoded, "boxes"), feeds


def object_detection_ssd(tf: Any, random: np.random.Generator) -> Any:
    """The box coder of the Object Detection API over a batch: constant anchors tiled, flattened and unstacked."""
    encodings = tf.placeholder(tf.float32, (None, 6, 4), "encodings")
    with tf.name_scope("Postprocessor"):
        yxyx = _table(random, 6)[:, [1, 0, 3, 2]]
        batch = tf.shape(encodings)[0]
        tiled = tf.tile(tf.expand_dims(tf.constant(yxyx, name="anchors"), 0), tf.stack([batch, 1, 1]))
        anchors, codes = tf.reshape(tiled, [-1, 4]), tf.reshape(encodings, [-1, 4])
        with tf.name_scope("Decode"):
            ymin, xmin, ymax, xmax = tf.unstack(tf.transpose(anchors))
            width, height = xmax - xmin, ymax - ymin
            ycenter, xcenter = ymin + height / 2.0, xmin + width / 2.0
            ty, tx, th, tw = tf.unstack(tf.transpose(codes))
            ty, tx, th, tw = ty / 10.0, tx / 10.0, th / 5.0, tw / 5.0
            w, h = tf.exp(tw) * width, tf.exp(th) * height
            y, x = ty * height + ycenter, tx * width + xcenter
            decoded = tf.transpose(tf.stack([y - h / 2.0, x - w / 2.0, y + h / 2.0, x + w / 2.0]))
        decoded = tf.reshape(decoded, tf.stack([batch, 6, 4]))
    return tf.identity(decoded, "boxes"), {"encodings": random.normal(0, 1, (2, 6, 4)).astype(np.float32)}


GRAPHS: dict[str, Callable[[Any, np.random.Generator], Any]] = {
    make.__name__: make for make in (tensorpack_rpn, tensorpack_frcnn, object_detection_ssd)
}


def main(folder: str) -> int:
    """Write all graphs."""
    import tensorflow

    tf = tensorflow.compat.v1
    for name, make in GRAPHS.items():
        graph = tensorflow.Graph()
        with graph.as_default(), tf.Session(graph=graph) as session:
            output, feeds = make(tf, np.random.default_rng(0))
            value = session.run(output, {f"{key}:0": given for key, given in feeds.items()})
        (Path(folder) / f"{name}.pb").write_bytes(graph.as_graph_def().SerializeToString())
        arrays = {f"in_{key}": given for key, given in feeds.items()} | {"out_boxes": value}
        np.savez_compressed(Path(folder) / f"{name}.npz", **arrays)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
