"""Handing the native library to ONNX Runtime."""

from __future__ import annotations

import functools
import importlib
import os
import threading
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from detops import _registry
from detops.grid_sample import _BORDERS, _TAPS
from detops.onnx._table import OPERATORS, REQUIRED, Attribute, Operator, attribute_argument
from detops.roi_align import MODES

DOMAINS = ("mmcv", "mmdeploy", "detops")
_ALL_DOMAINS = ("", *DOMAINS)

# The kernels of a family, in the order in which the native code numbers them.
_KERNELS = {
    "cumulative": ("cumulative",),
    "decode_bbox": ("decode_bbox",),
    "deform_conv2d": ("deform_conv2d",),
    "grid_sample": ("grid_sample",),
    "instance_norm": ("instance_norm",),
    "non_max_suppression_padded": ("non_max_suppression", "selected_rows"),
    "roi_align": ("roi_align", "roi_align_points"),
    "roi_pool": ("roi_pool",),
}

# Text options as the numbers that the kernels know them by.
_CODES = {**MODES, **_TAPS, **_BORDERS}

_lock = threading.RLock()
_registered: weakref.WeakSet[Any] = weakref.WeakSet()


def library_path(domains: Iterable[str] = DOMAINS) -> str:
    """Return the path for ``onnxruntime.SessionOptions.register_custom_ops_library``.

    The library holds native kernels that run without the GIL, on the session's own threads, in models of any opset,
    with ONNX Runtime 1.16 and later.

    Parameters
    ----------
    domains : iterable of str, default ("mmcv", "mmdeploy", "detops")
        The domains whose operators a registration brings, out of ``""``, ``"mmcv"``, ``"mmdeploy"`` and ``"detops"``.
        ``""`` replaces DeformConv, GridSample and MaxRoiPool of ONNX Runtime, for versions that lack them. Leave a
        domain out where another library of custom operators brings it: ONNX Runtime takes a domain once per session.

    Returns
    -------
    str
        The path of a shared library. It is the same for all domains: their choice holds for registrations in this
        process until the next call.

    Raises
    ------
    ValueError
        If there is no domain of that name.
    ImportError
        If the compiled kernels are missing.

    See Also
    --------
    session : A session with the library registered.
    supported_ops : What the library holds.

    Examples
    --------
    >>> import onnxruntime
    >>> import detops.onnx
    >>> options = onnxruntime.SessionOptions()
    >>> options.register_custom_ops_library(detops.onnx.library_path())
    """
    chosen = tuple(domains)
    for domain in chosen:
        if domain not in _ALL_DOMAINS:
            wanted = ", ".join(map(repr, _ALL_DOMAINS))
            raise ValueError(f"domains: expected some of {wanted}, got {domain!r}")
    with _lock:
        native = _native()
        native.select(chosen)
    return native.__file__


def session(model: Any, *, domains: Iterable[str] = DOMAINS, **kwargs: Any) -> Any:
    """Return an ONNX Runtime session that knows the operators of this library.

    Parameters
    ----------
    model : str, os.PathLike, bytes or onnx.ModelProto
        The model or its path.
    domains : iterable of str, default ("mmcv", "mmdeploy", "detops")
        As in :func:`library_path`.
    **kwargs
        Arguments of ``onnxruntime.InferenceSession``. ``providers`` is by default the CPU's. The library is
        registered with ``sess_options``, if they are given, once.

    Returns
    -------
    onnxruntime.InferenceSession
        The session.

    Raises
    ------
    ImportError
        If onnxruntime is not installed or the compiled kernels are missing.

    See Also
    --------
    library_path : For options of your own.
    reference_ops : Run the model in ONNX's own evaluator.

    Examples
    --------
    >>> import numpy as np
    >>> import onnx.parser
    >>> import detops.onnx
    >>> model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["": 17, "mmcv": 1]>
    ... agraph (float[N] x) => (float[N] y, int64[N] i) { y, i = mmcv.cummax <dim = 0> (x) }''')
    >>> detops.onnx.session(model).run(None, {"x": np.array([1, 3, 2], np.float32)})
    [array([1., 3., 3.], dtype=float32), array([0, 1, 1])]
    """
    import onnxruntime

    options = kwargs.pop("sess_options", None) or onnxruntime.SessionOptions()
    kwargs.setdefault("providers", ["CPUExecutionProvider"])
    with _lock:
        if options not in _registered:
            options.register_custom_ops_library(library_path(domains))
            _registered.add(options)
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    return onnxruntime.InferenceSession(model if isinstance(model, bytes) else os.fspath(model), options, **kwargs)


@functools.cache
def _native() -> Any:
    """The native library with its table filled."""
    _registry.require("cython")
    native: Any = importlib.import_module("detops.onnx._native")
    rows: dict[str, list[dict[str, Any]]] = {domain: [] for domain in _ALL_DOMAINS}
    for operator in OPERATORS:
        if operator.native:
            rows[operator.domain].append(_row(operator))
    native.define(rows, os.cpu_count() or 1)
    return native


def _row(operator: Operator) -> dict[str, Any]:
    return {
        "domain": operator.domain,
        "name": operator.name,
        "title": operator.title,
        "family": operator.family,
        "inputs": [(each.name, each.argument, each.dtype, each.required) for each in operator.inputs],
        "outputs": [dtype for _, dtype in operator.outputs],
        "attributes": [_attribute(declared) for declared in operator.attributes],
        "fixed": {argument: _code(value) for argument, value in operator.fixed.items()},
        "kernels": [(dtype, _capsules(operator.family, dtype)) for dtype in operator.dtypes],
    }


def _attribute(declared: Attribute) -> dict[str, Any]:
    required = declared.default is REQUIRED
    return {
        "names": declared.names,
        "argument": declared.argument,
        "kind": declared.kind,
        "required": required,
        "fallback": None if required else _code(attribute_argument(declared, {})),
        "words": [(word, _code(value)) for word, value in declared.words.items()],
        "order": declared.order,
    }


def _code(value: Any) -> Any:
    """A value of a public function's argument as numbers."""
    if isinstance(value, str):
        return _CODES[value]
    return int(value) if isinstance(value, bool) else value


def _capsules(family: str, dtype: str) -> list[Any]:
    computed = np.dtype("float32" if dtype == "float16" else dtype)
    return [_registry.compiled(name, computed).__pyx_capi__[f"{name}_operator"] for name in _KERNELS[family]]
