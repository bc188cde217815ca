"""Finds the box decodes of a TensorFlow or ONNX model, proves them, and replaces each by one node.

`find_decode_bbox` lists what was found and why the rest cannot be fused; `fuse_decode_bbox` writes the fused model.
Neither TensorFlow nor a runtime is needed. Importing this package imports neither ONNX nor protobuf.
"""

from __future__ import annotations

from detops.graph._api import find_decode_bbox, fuse_decode_bbox
from detops.graph._finding import Finding

__all__ = ["Finding", "find_decode_bbox", "fuse_decode_bbox"]
