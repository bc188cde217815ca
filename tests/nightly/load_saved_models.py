"""Fused SavedModels in TensorFlow itself: ``python tests/nightly/load_saved_models.py FOLDER``.

Models are written to the folder by TensorFlow, fused, and loaded before and after by all that loads one:
``tf.saved_model.load``, a session, and the converter of TensorFlow Lite, whose models run too.
"""

import argparse
import math
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from detops.graph import _saved_model, fuse_decode_bbox

v1 = tf.compat.v1
Arrays = dict[str, np.ndarray]


def decode(predictions: Any, anchors: Any, scale: Any = 1.0) -> Any:
    """Return the boxes, in tensorpack's order of arithmetic."""
    shift, growth = tf.split(tf.reshape(predictions, [-1, 2, 2]) / scale, 2, 1)
    low, high = tf.split(tf.reshape(anchors, [-1, 2, 2]), 2, 1)
    size, center = high - low, (high + low) * 0.5
    half = tf.exp(tf.minimum(growth, math.log(1333 / 16))) * size * 0.5
    moved = shift * size + center
    return tf.reshape(tf.concat([moved - half, moved + half], 1), [-1, 4])


def plain(predictions: Any, anchors: Any) -> Mapping[str, Any]:
    """One decode, and what reads it."""
    with tf.name_scope("rpn"):
        found = decode(predictions, anchors)
    return {"boxes": found, "clipped": tf.maximum(found, 0.0)}


def scaled(predictions: Any, anchors: Any) -> Mapping[str, Any]:
    """A decode with scales, twice."""
    with tf.name_scope("head"):
        found = decode(predictions, anchors, [[10.0, 10.0], [5.0, 5.0]])
    with tf.name_scope("second_head"):
        again = decode(predictions, found, [[10.0, 10.0], [5.0, 5.0]])
    return {"boxes": again}


MODELS: dict[Callable[..., Mapping[str, Any]], int] = {plain: 1, scaled: 2}


def save(make: Callable[..., Mapping[str, Any]], folder: Path) -> None:
    """Write a model with a signature."""
    graph = tf.Graph()
    with graph.as_default(), v1.Session() as session:
        given = {name: v1.placeholder(tf.float32, [None, 4], name) for name in ("predictions", "anchors")}
        v1.saved_model.simple_save(session, str(folder), given, dict(make(**given)))


def fuse(source: Path, target: Path) -> int:
    """Write the fused model beside whatever else is in the folder; return how many decodes it has."""
    data, findings = fuse_decode_bbox(source)
    _saved_model.write(data, source, target)
    return sum(finding.fused for finding in findings)


def loaded(folder: Path, feeds: Arrays) -> Arrays:
    """Load a model as an object, and call its signature."""
    call = tf.saved_model.load(str(folder)).signatures["serving_default"]
    return {name: value.numpy() for name, value in call(**{key: tf.constant(x) for key, x in feeds.items()}).items()}


def in_a_session(folder: Path, feeds: Arrays) -> Arrays:
    """Load a model into a session."""
    with v1.Session(graph=tf.Graph()) as session:
        signature = v1.saved_model.load(session, ["serve"], str(folder)).signature_def["serving_default"]
        given = {signature.inputs[name].name: value for name, value in feeds.items()}
        return session.run({name: info.name for name, info in signature.outputs.items()}, given)


def lite(folder: Path, feeds: Arrays) -> Arrays:
    """Convert a model to TensorFlow Lite, and run that."""
    runner = tf.lite.Interpreter(model_content=tf.lite.TFLiteConverter.from_saved_model(str(folder)).convert())
    return runner.get_signature_runner()(**feeds)


def main() -> int:
    """Print a line for each model and each way to load it; return 1 where something fails or is another."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    folder = arguments.parse_args().folder
    random, wrong = np.random.default_rng(0), 0
    corners = random.uniform(0, 300, (7, 2)).astype(np.float32)
    anchors = np.concatenate([corners, corners + random.uniform(1, 90, (7, 2)).astype(np.float32)], axis=1)
    feeds = {"predictions": random.normal(0, 2, (7, 4)).astype(np.float32), "anchors": anchors}
    for make, count in MODELS.items():
        before, after = folder / make.__name__, folder / f"{make.__name__}_fused"
        for each in (before, after):
            shutil.rmtree(each, ignore_errors=True)
        save(make, before)
        fused = fuse(before, after)
        wrong += fused != count
        print(f"{make.__name__}: fused {fused} of {count}")
        for way in (loaded, in_a_session, lite):
            try:
                left, right = way(before, feeds), way(after, feeds)
                same = left.keys() == right.keys()
                same = same and all(np.allclose(left[key], right[key], rtol=1e-5, atol=1e-3) for key in left)
                outcome = "the same" if same else "CHANGED"
            except Exception as error:  # whatever it is, it is what people would meet
                same, outcome = False, f"{type(error).__name__}: {str(error)[:200]}"
            wrong += not same
            print(f"{make.__name__}: {way.__name__}: {outcome}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
