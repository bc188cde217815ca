"""How the native library numbers the inputs, attributes and kernels of a family of operators.

``native/families`` reads them by names such as ``ROI_IN_ROIS``, ``ROI_MODE`` and ``ROI_RUN_ROI_ALIGN``, which
``setup.py`` writes from here. This module imports nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from detops.onnx._table import OPERATORS, NodeType

# A family, and what its constants begin with.
PREFIXES = {
    "cumulative": "SCAN",
    "decode_bbox": "BOX",
    "deform_conv2d": "CONV",
    "grid_sample": "GRID",
    "instance_norm": "NORM",
    "multi_scale_deform_attn": "ATTN",
    "nms": "KEEP",
    "non_max_suppression_padded": "NMS",
    "roi_align": "ROI",
    "roi_pool": "POOL",
    "soft_nms": "SOFT",
}


@dataclass(frozen=True)
class Slots:
    """Names in the order of their numbers."""

    inputs: tuple[str, ...]
    attributes: tuple[str, ...]
    kernels: tuple[str, ...]


def slots(family: str) -> Slots:
    """Return the slots of a family: its arguments in the order of the public function, others in that of the nodes."""
    rows = [row for row in OPERATORS if row.native and row.family == family]
    order = {each.name: number for number, each in enumerate(rows[0].function.parameters)}
    return Slots(
        _in_order(order, (each.argument for row in rows for each in row.inputs)),
        _in_order(order, (argument for row in rows for argument in _settled(row))),
        rows[0].function.kernels,
    )


def _settled(row: NodeType) -> tuple[str, ...]:
    return (*(each.argument for each in row.attributes), *row.fixed)


def _in_order(order: dict[str, int], names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(names), key=lambda name: order.get(name, len(order))))


def as_cython() -> str:
    """Return Cython text with the number of every slot, and how many there are at most of everything in a table."""
    found = {prefix: slots(family) for family, prefix in PREFIXES.items()}
    attributes = [each for row in OPERATORS for each in row.attributes]
    most = {
        "INPUTS": max(len(each.inputs) for each in found.values()),
        "OUTPUTS": max(len(row.outputs) for row in OPERATORS),
        "ATTRIBUTES": max(len(each.attributes) for each in found.values()),
        "KERNELS": max(len(each.kernels) for each in found.values()),
        "NAMES": max(len(each.names) for each in attributes),
        "WORDS": max(len(each.words) for each in attributes),
    }
    lines = [_enum(f"MAX_{name} = {number}" for name, number in most.items())]
    for prefix, each in found.items():
        lines.append(_enum(_numbered(f"{prefix}_IN", each.inputs)))
        lines.append(_enum(_numbered(prefix, each.attributes)))
        lines.append(_enum(_numbered(f"{prefix}_RUN", each.kernels)))
    return "\n".join(lines)


def _numbered(prefix: str, names: Iterable[str]) -> list[str]:
    return [f"{prefix}_{name.upper()} = {number}" for number, name in enumerate(names)]


def _enum(members: Iterable[str]) -> str:
    lines = [f"    {member}" for member in members]
    return "\n".join(["cdef enum:", *lines, ""]) if lines else ""
