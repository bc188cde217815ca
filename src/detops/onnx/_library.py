"""Handing the native library to ONNX Runtime."""

from __future__ import annotations

import functools
import importlib
import os
import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from detops.onnx._expansion import expand
from detops.onnx._slots import Slots, slots
from detops.onnx._table import FLOATS, OPERATORS, REQUIRED, Attribute, NodeType, attribute_argument
from detops.runtime import _registry

DOMAINS = ("mmcv", "mmdeploy", "detops")
_ALL_DOMAINS = ("", *DOMAINS)

# Operators of the default domain that ONNX does not define: MMCV wrote them, so they come with MMCV's domain.
_WITHOUT_DOMAIN = "mmcv's without a domain"

_lock = threading.RLock()


def library_path(domains: Iterable[str] = DOMAINS) -> str:
    """Return the path for ``onnxruntime.SessionOptions.register_custom_ops_library``.

    The library holds native kernels that run without the GIL, on the session's own threads, in models of any opset,
    with ONNX Runtime 1.16 and later.

    Parameters
    ----------
    domains : iterable of str, default ("mmcv", "mmdeploy", "detops")
        The domains whose operators a registration brings, out of ``""``, ``"mmcv"``, ``"mmdeploy"`` and ``"detops"``.
        ``""`` replaces DeformConv, GridSample, InstanceNormalization, MaxRoiPool and RoiAlign (from opset 22 on) of
        ONNX Runtime, where it lacks them or some of their types. ``"mmcv"`` also brings the nodes that MMCV has written
        without a domain. Leave a domain out where another library of custom operators brings it: ONNX Runtime takes a
        domain once per session.

    Returns
    -------
    str
        The path of a shared library. It is the same for all domains: their choice holds for registrations in this
        process until the next call. Another process may register the same path, if its Python can import detops; it
        gets the default domains. To register with the same options again changes nothing.

    Raises
    ------
    TypeError
        If `domains` is one text.
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
    chosen = _chosen(domains)
    with _lock:
        native = _native()
        native.select(_groups(chosen))
    return native.__file__


def _chosen(domains: Iterable[str]) -> tuple[str, ...]:
    if isinstance(domains, str):
        raise TypeError(f"domains: expected several, as ({domains!r},), got {domains!r}")
    chosen = tuple(domains)
    for domain in chosen:
        if domain not in _ALL_DOMAINS:
            wanted = ", ".join(map(repr, _ALL_DOMAINS))
            raise ValueError(f"domains: expected some of {wanted}, got {domain!r}")
    return chosen


def _groups(chosen: tuple[str, ...]) -> tuple[str, ...]:
    """Return the groups of operators that are registered for these domains."""
    return (*chosen, _WITHOUT_DOMAIN) if "mmcv" in chosen and "" not in chosen else chosen


def session(model: Any, *, domains: Iterable[str] = DOMAINS, **kwargs: Any) -> Any:
    """Return an ONNX Runtime session that knows the operators of this library.

    Nodes that exporters write for TensorRT run as well, if the package onnx is installed: see :func:`expand`.

    Parameters
    ----------
    model : str, os.PathLike, bytes or onnx.ModelProto
        The model or its path.
    domains : iterable of str, default ("mmcv", "mmdeploy", "detops")
        As in :func:`library_path`.
    **kwargs
        Arguments of ``onnxruntime.InferenceSession``. ``providers`` is by default the CPU's. The library is
        registered with ``sess_options``, if they are given, unless it is so already.

    Returns
    -------
    onnxruntime.InferenceSession
        The session.

    Raises
    ------
    TypeError
        If `domains` is one text.
    ValueError
        If there is no domain of that name, or ``sess_options`` have others registered than `domains` names.
    ImportError
        If onnxruntime is not installed or the compiled kernels are missing.

    See Also
    --------
    library_path : For options of your own.
    expand : What becomes of nodes that only TensorRT has.
    reference_ops : Run the model in ONNX's own evaluator.

    Examples
    --------
    >>> import numpy as np
    >>> import onnx.parser
    >>> import detops.onnx
    >>> model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["": 17, "mmcv": 1]>
    ... agraph (float[N] x) => (float[N] y, int64[N] i) { y, i = mmcv.cummax <dim = 0> (x) }''')
    >>> values, indices = detops.onnx.session(model).run(None, {"x": np.array([1, 3, 2], np.float32)})
    >>> values.tolist(), indices.tolist()
    ([1.0, 3.0, 3.0], [0, 1, 1])
    """
    import onnxruntime

    options = kwargs.pop("sess_options", None) or onnxruntime.SessionOptions()
    kwargs.setdefault("providers", ["CPUExecutionProvider"])
    chosen = _chosen(domains)
    others = [repr(each) for each in _ALL_DOMAINS if each not in chosen and _has(options, each)]
    if others:
        wanted = ", ".join(map(repr, chosen))
        raise ValueError(
            f"domains: sess_options have {', '.join(others)} registered beside {wanted}; use other options"
        )
    with _lock:
        options.register_custom_ops_library(library_path(chosen))
    plain = model.SerializeToString() if hasattr(model, "SerializeToString") else model
    try:
        return onnxruntime.InferenceSession(plain if isinstance(plain, bytes) else os.fspath(plain), options, **kwargs)
    except MemoryError:
        raise
    except Exception:  # ONNX Runtime's own kinds of exception
        expanded = _expanded(model)
        if expanded is None:
            raise
    return onnxruntime.InferenceSession(expanded, options, **kwargs)


def _expanded(model: Any) -> bytes | None:
    """A model without compositions; None if it has none, or cannot be read."""
    try:
        import onnx

        proto = onnx.load_from_string(model) if isinstance(model, bytes) else model
        proto = proto if hasattr(proto, "SerializeToString") else onnx.load(os.fspath(proto))
    except Exception:  # what ONNX Runtime has said is what matters
        return None
    expanded: Any = expand(proto)
    return None if expanded == proto else expanded.SerializeToString()


def _has(options: Any, domain: str) -> bool:
    """Whether the operators of a domain were registered with these options: the library leaves an entry there."""
    try:
        return options.get_session_config_entry(f"detops.operators.{domain}") == "1"
    except RuntimeError:
        return False


@functools.cache
def _native() -> Any:
    """The native library with its table filled and the default domains chosen."""
    _registry.require("cython")
    native: Any = importlib.import_module("detops.onnx._native")
    rows = {
        domain: [_row(each) for each in OPERATORS if each.native and each.domain == domain] for domain in _ALL_DOMAINS
    }
    groups = [(domain, domain, False, found) for domain, found in rows.items()]
    groups.append((_WITHOUT_DOMAIN, "", True, [row for row in rows[""] if row["name"].startswith("MMCV")]))
    native.define(groups, os.cpu_count() or 1)
    native.select(_groups(DOMAINS))
    return native


def _row(operator: NodeType) -> dict[str, Any]:
    numbered = slots(operator.family)
    settled = [*operator.fixed, *(declared.argument for declared in operator.attributes)]
    if sorted(settled) != sorted(numbered.attributes):
        raise ValueError(f"{operator.title}: expected an attribute or a fixed value for each of {numbered.attributes}")
    return {
        "domain": operator.domain,
        "name": operator.name,
        "title": operator.title,
        "family": operator.family,
        "start": min(operator.versions) if _has_other_forms(operator) else 1,
        "inputs": [
            (each.name, numbered.inputs.index(each.argument), each.dtype, each.required) for each in operator.inputs
        ],
        "outputs": [dtype for _, dtype in operator.outputs],
        "attributes": [_attribute(operator, numbered, declared) for declared in operator.attributes],
        "fixed": [
            (numbered.attributes.index(argument), _code(operator, argument, value))
            for argument, value in operator.fixed.items()
        ],
        "overloads": [_overload(operator, types) for types in operator.combinations],
    }


def _has_other_forms(operator: NodeType) -> bool:
    """Whether older opset versions define the operator in another form."""
    return any(
        (each.domain, each.name) == (operator.domain, operator.name) and each is not operator for each in OPERATORS
    )


def _overload(operator: NodeType, types: tuple[str, ...]) -> tuple[tuple[str, ...], str, list[Any]]:
    computed = _computed(operator, types)
    return types, computed, _capsules(operator.function.kernels, computed)


def _computed(operator: NodeType, types: tuple[str, ...]) -> str:
    """The type that kernels compute inputs of these types in: at least float32 for floats."""
    free = [dtype for each, dtype in zip(operator.inputs, types, strict=True) if each.dtype == "T"]
    if free[0] not in FLOATS:
        return free[0]
    # Operators that give no result of a type of theirs compute in the widest of all inputs.
    typed = any(dtype == "T" for _, dtype in operator.outputs)
    return np.result_type(*(free[:1] if typed else free), np.float32).name


def _attribute(operator: NodeType, numbered: Slots, declared: Attribute) -> dict[str, Any]:
    code = functools.partial(_code, operator, declared.argument)
    required = declared.default is REQUIRED
    return {
        "names": declared.names,
        "slot": numbered.attributes.index(declared.argument),
        "kind": declared.kind,
        "required": required,
        "fallback": None if required else code(attribute_argument(declared, {})),
        "words": [(word, code(value)) for word, value in declared.words.items()],
        "order": declared.order,
    }


def _code(operator: NodeType, argument: str, value: Any) -> Any:
    """A value of a public function's argument as numbers."""
    if isinstance(value, str):
        return operator.function.option(argument).words[value]
    return int(value) if isinstance(value, bool) else value


@functools.cache
def _capsules(kernels: tuple[str, ...], dtype: str) -> list[Any]:
    return [_registry.compiled(name, np.dtype(dtype)).__pyx_capi__[f"{name}_operator"] for name in kernels]
