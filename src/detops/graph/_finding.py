"""The reports of the search: one `Finding` for every subgraph that looks like a box decode."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


class Refusal(Exception):
    """Why a subgraph isn't proved to be a decode; `depth` grows with how far the proof came."""

    def __init__(self, reason: str, depth: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.depth = depth


class CannotRunError(Refusal):
    """The subgraph itself has no result at the sizes tried, so there is nothing to compare."""


@dataclass(frozen=True)
class Finding:
    """One box decode, or a subgraph that looks like one.

    Parameters
    ----------
    scope : str
        Deepest name scope that holds the arithmetic (``"rpn/decode_bbox_target"``); empty where names have none.
    nodes : tuple of str
        The nodes that the fused one stands for, in topological order: what a quantizer must leave alone.
        An ONNX node without a name is given by its first output.
    box_predictions, anchors, decoded_boxes : str or None
        Tensor names of the two inputs and of the output; None where they were not found. Where corners are bounded
        before they are joined, `decoded_boxes` is the joined tensor, and the bounds are no part of the decode.
    operator : str or None
        ``"DecodeBbox"`` or ``"DecodeBboxV2"``; None where the subgraph is not proved.
    decode_clip : float or None
        Upper bound of tw and th before the exponential; None for no bound.
    scales, means : tuple of 4 floats
        Predictions are taken as ``t / scale + mean``, in the order of the coordinates.
    axis : int or None
        The axis that holds the coordinates; None where the subgraph is not proved.
    classes : int or None
        Predictions per anchor along `axis`; None where the subgraph is not proved.
    fused : bool
        Whether the subgraph is proved and can be replaced (and, from `fuse_decode_bbox`, is).
    reason : str
        Why not, where `fused` is False; empty otherwise.
    lower_clip : float or None
        Lower bound of tw and th; None for no bound.
    checked : str
        What ran the subgraph and the fused node on numbers: ``"onnxruntime"``, ``"onnx.reference"``, ``"tensorflow"``
        or ``"numpy"``; empty where the subgraph is not proved.
    form : str
        What the predictions are: ``"delta"`` (DecodeBbox's own form, proved), ``"ltrb"`` (distances to the left, top,
        right and bottom), ``"dfl"`` (the same, as means of distributions), ``"tblr"`` (in that order), ``"cxcywh"``
        (center and size), ``"yolo"`` (a center relative to a cell, and a size); empty where it has no name. All but the
        first are found so that a quantizer can leave them alone: they are looked at for one size and two boxes, and
        `fused` is False.
    anchor_form : str
        ``"corner"`` for anchors (x1, y1, x2, y2), ``"center"`` for (cx, cy, w, h).
    offset : int
        1 where widths count pixels, x2 - x1 + 1.
    added : tuple of 4 floats
        What is added to `anchors` before the node, where they count pixels and the decoded boxes don't: (0, 0, 1, 1) as
        in py-faster-rcnn, or (-0.5, -0.5, 0.5, 0.5) as in MMDetection 2's ``LegacyDeltaXYWHBBoxCoder``.

    Examples
    --------
    >>> from importlib.resources import files
    >>> from detops.graph import find_decode_bbox
    >>> finding = find_decode_bbox(files("detops") / "data/digits/digits.onnx")[1]
    >>> finding.fused, finding.decoded_boxes, finding.scales
    (True, 'head/decode_bbox/Reshape_2', (10.0, 10.0, 5.0, 5.0))
    """

    scope: str
    nodes: tuple[str, ...]
    box_predictions: str | None = None
    anchors: str | None = None
    decoded_boxes: str | None = None
    operator: str | None = None
    decode_clip: float | None = None
    scales: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)
    means: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    axis: int | None = None
    classes: int | None = None
    fused: bool = False
    reason: str = ""
    lower_clip: float | None = None
    checked: str = ""
    form: str = ""
    anchor_form: str = "corner"
    offset: int = 0
    added: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as a dictionary of JSON types."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
