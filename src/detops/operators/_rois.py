"""Checks of rois and batch indices, which all operators on regions of interest share."""

from typing import Any

import numpy as np

from detops.operators import _checks
from detops.operators._call import Call

_INT64 = np.dtype(np.int64)


def prepare(backend: str | None, features: Any, rois: Any, batch_indices: Any) -> tuple[Call, np.dtype, Any]:
    """Check features and rois; return the call, the type to compute in, and the image of each roi as int64.

    The call's ``rois`` have five columns, or four; a list of boxes for each image becomes four.
    """
    if _are_by_image(rois):
        if batch_indices is not None:
            raise TypeError("batch_indices: expected None beside a list of boxes for each image, got another value")
        boxes = {f"rois[{image}]": each for image, each in enumerate(rois)}
        call = Call(backend, features=features, **boxes)
        dtype = _check_features(call)
        return call, dtype, _join(call, tuple(boxes))
    call = Call(backend, features=features, rois=rois, batch_indices=batch_indices)
    dtype = _check_features(call)
    call.check_dtype(_checks.COORDINATES, "rois")
    return call, dtype, _image_of_each(call)


def _check_features(call: Call) -> np.dtype:
    dtype = call.check_dtype(_checks.FLOATS, "features")
    _checks.shape("features", call["features"].shape, ("batch", "channels", "height", "width"))
    return dtype


def _are_by_image(rois: Any) -> bool:
    """Whether rois are a list or tuple of boxes for each image, rather than one table of all."""
    if not isinstance(rois, list | tuple) or not rois:
        return False
    return any(map(_is_table, rois)) or all(map(_is_empty, rois))


def _ndim(value: Any) -> int:
    # An array of NumPy is asked as one of its own class.
    return np.asarray(value).ndim if isinstance(value, np.ndarray) else getattr(value, "ndim", 0)


def _is_table(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and (isinstance(value[0], list | tuple) or _ndim(value[0]) == 1)
    return _ndim(value) == 2


def _is_empty(value: Any) -> bool:
    return (isinstance(value, list | tuple) or _ndim(value) == 1) and len(value) == 0


def _join(call: Call, names: tuple[str, ...]) -> Any:
    """Make the call's rois of the boxes of each image; return the image of each."""
    batch = call["features"].shape[0]
    if len(names) != batch:
        raise ValueError(f"rois: expected boxes for each of {batch} images, got {len(names)} arrays")
    tables = []
    for name in names:
        dtype = call.check_dtype(_checks.COORDINATES, name)
        call.read_empty(name, 4)
        _checks.shape(name, call[name].shape, ("num_rois", 4))
        tables.append(call.space.to_host(call[name]).astype(dtype, copy=False))
    call.inputs["rois"] = np.concatenate(tables)
    return call.space.cast(np.repeat(np.arange(batch), [len(table) for table in tables]), _INT64)


def _image_of_each(call: Call) -> Any:
    """Check the shapes of rois and batch_indices; return the image of each roi, in call's space."""
    if call.get("batch_indices") is None:
        name = "rois"
        call.read_empty("rois", 5)
        _check_columns(call["rois"].shape)
        indices = call.space.to_host(call["rois"])[:, 0]
    else:
        name = "batch_indices"
        call.read_empty("rois", 4)
        call.check_dtype(_checks.COORDINATES, "batch_indices")
        _checks.shape("rois", call["rois"].shape, ("num_rois", 4))
        _checks.shape("batch_indices", call["batch_indices"].shape, (call["rois"].shape[0],))
        indices = call.space.to_host(call["batch_indices"])
    batch = call["features"].shape[0]
    wrong = ~((indices >= 0) & (indices < batch) & (indices == np.trunc(indices)))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"{name}: expected whole batch indices in [0, {batch}), got {indices[row]} in row {row}")
    return call.space.cast(indices, _INT64)


def _check_columns(shape: tuple[int, ...]) -> None:
    """Raise ValueError unless rois have five columns; with four, say where batch indices go."""
    if len(shape) == 2 and shape[1] == 4:
        missing = "rois of 4 columns need batch_indices, or come as a list of boxes for each image"
        raise ValueError(f"rois: expected shape (num_rois, 5), got {tuple(shape)}; {missing}")
    _checks.shape("rois", shape, ("num_rois", 5))
