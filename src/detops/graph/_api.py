"""The public functions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from detops.graph._finding import Finding, Refusal

if TYPE_CHECKING:
    from detops.graph.model._load import Loaded
    from detops.graph.proof._prove import Proof
    from detops.graph.search._find import Result


def find_decode_bbox(model: Any) -> list[Finding]:
    """Find the box decodes in a model, and say why those that cannot be fused cannot.

    A decode is found by symbolic proof, not by pattern: whatever operators and layout a subgraph uses, it is reported
    as fused where its output equals the decode of two of its tensors for all values and sizes that the model allows,
    and where a run on random boxes agrees. Bodies of If, Loop and Scan are searched too.

    Parameters
    ----------
    model : onnx.ModelProto, bytes, str or path
        An ONNX model; or a TensorFlow GraphDef or SavedModel with a frozen graph: a message, its bytes, its text, or
        the path of a file or of a SavedModel folder. It isn't changed.

    Returns
    -------
    list of Finding
        In the order of the graph, one for each decode and each subgraph that looks like one.

    Raises
    ------
    TypeError
        `model` is none of these.
    ValueError
        `model` cannot be read, is cut short, or is no valid graph (a cycle, an input that nothing makes).

    Notes
    -----
    What is equal is the arithmetic on real numbers. A NaN or an infinity may come out in other coordinates of its own
    box where the model orders the arithmetic otherwise. The fused node fails for inputs whose shapes don't fit, also
    where the subgraph would have given something.

    The scope rule for TensorFlow is that of CANN's ScopeDecodeBboxPass.

    Examples
    --------
    >>> from importlib.resources import files
    >>> from detops.graph import find_decode_bbox
    >>> for finding in find_decode_bbox(files("detops") / "data/digits/digits.onnx"):
    ...     print(finding.decoded_boxes, finding.operator, finding.reason or "can be fused")
    rpn/decode_bbox/Reshape_2 DecodeBbox can be fused
    head/decode_bbox/Reshape_2 DecodeBboxV2 can be fused
    """
    return [result.finding for result in _search(model)[1]]


def fuse_decode_bbox(model: Any) -> tuple[Any, list[Finding]]:
    """Replace the box decodes of a model by one DecodeBbox (or DecodeBboxV2) node each.

    The node comes with a function of the same name and meaning in the model, so that stock ONNX Runtime and TensorFlow
    run it too, while a runtime that knows the operator sees one node. Inputs, outputs and metadata of the model stay;
    nodes that something else reads stay; what nothing reads any more goes.

    Parameters
    ----------
    model : onnx.ModelProto, bytes, str or path
        As for `find_decode_bbox`. It isn't changed.

    Returns
    -------
    model
        A new model of the same kind: a message for a message, text for text, bytes for bytes and for the path of a
        file.
    findings : list of Finding
        What `find_decode_bbox` returns.

    Raises
    ------
    TypeError, ValueError
        As for `find_decode_bbox`.

    Notes
    -----
    Within one runtime the fused model is bit-equal to the original where that has tensorpack's order of arithmetic;
    other forms differ by a few units in the last place.

    Examples
    --------
    >>> from importlib.resources import files
    >>> import onnx
    >>> from detops.graph import fuse_decode_bbox
    >>> model = onnx.load(files("detops") / "data/digits/digits.onnx")
    >>> fused, findings = fuse_decode_bbox(model)
    >>> len(model.graph.node) - len(fused.graph.node), [finding.fused for finding in findings]
    (35, [True, True])
    """
    loaded, results = _search(model)
    return loaded.restore(rewrite(loaded, results)), [result.finding for result in results]


def rewrite(loaded: Loaded, results: list[Result]) -> Any:
    """Write the fused nodes into the loaded message, and return it."""
    from detops.graph.rewrite import _rewrite_onnx, _rewrite_tf
    from detops.graph.rewrite._rewrite import plan

    plans = []
    for graph in loaded.graphs:
        proofs = [result.proof for result in results if result.graph is graph and result.proof is not None]
        if proofs:
            plans.append(plan(graph, proofs))
    if plans:
        (_rewrite_onnx if loaded.dialect == "onnx" else _rewrite_tf).apply(loaded.proto, plans)
    return loaded.proto


def _search(model: Any) -> tuple[Loaded, list[Result]]:
    from detops.graph.model._load import load

    loaded = load(model)
    return loaded, search(loaded)


def search(loaded: Loaded) -> list[Result]:
    """Return the results for every graph of a model: proved, checked in numbers, or refused."""
    from detops.graph.check._check import check
    from detops.graph.rewrite import _rewrite_onnx, _rewrite_tf
    from detops.graph.search._find import find_in

    writer = _rewrite_onnx if loaded.dialect == "onnx" else _rewrite_tf
    accepted: list[Proof] = []
    results = []
    for graph in loaded.graphs:
        for result in find_in(graph):
            if result.proof is not None:
                try:
                    writer.check_room(loaded, result.proof, accepted)
                    checked = check(graph, result.proof)
                    accepted.append(result.proof)
                    result = replace(result, finding=replace(result.finding, checked=checked))
                except Refusal as refusal:
                    finding = replace(result.finding, fused=False, reason=refusal.reason)
                    result = replace(result, finding=finding, proof=None)
            results.append(result)
    return results
