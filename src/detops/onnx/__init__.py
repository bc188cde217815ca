"""Exported models: operators for ONNX's own evaluator, and a native library of custom operators for ONNX Runtime.

The parts that need the packages onnx or onnxruntime import them when they are called.
"""

from typing import Any

from detops.onnx._expansion import expand
from detops.onnx._library import library_path, session
from detops.onnx._schemas import register_schemas
from detops.onnx._table import supported_ops

__all__ = ["expand", "library_path", "reference_ops", "register_schemas", "session", "supported_ops"]


def __getattr__(name: str) -> Any:
    if name == "reference_ops":  # needs the package onnx, the others do not
        from detops.onnx._reference import reference_ops

        return reference_ops
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
