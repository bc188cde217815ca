"""Bug reports with the right values, through every node that computes what they are about, in both engines."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from detops.onnx._table import OPERATORS, NodeType
from tests.onnx.models import feeds, model, run_native, run_reference
from tests.support.json_cases import FOLDER, Subcase, decoding, settled, subcases

Attributes = dict[str, Any]

EXPORTED = ("mmcv", "mmdeploy")
# Nodes that have the inputs and the attributes of the operator that a case names.
SAME = {
    "MMCVNonMaxSuppression": [("mmdeploy", "NonMaxSuppression"), ("detops", "NonMaxSuppression")],
    **{name: [(domain, name) for domain in EXPORTED] for name in ("MMCVRoiAlign", "grid_sampler", "cummax", "cummin")},
    "InstanceNormalization": [
        ("", "InstanceNormalization"),
        ("", "MMCVInstanceNormalization"),
        *((domain, f"{brand}InstanceNormalization") for domain in EXPORTED for brand in ("MMCV", "TRT")),
    ],
    **{name: [("", name)] for name in ("RoiAlign", "MaxRoiPool", "GridSample", "ScatterND", "NonMaxSuppression")},
}
# Functions that have no node.
ALONE = {"EncodeBbox", "roi_pool", "MMCVRoIPool", "graph_only"}


def find(domain: str, name: str) -> NodeType:
    """The operator of a name, in its newest version."""
    return [each for each in OPERATORS if (each.domain, each.name) == (domain, name)][-1]


def convolutions(case: Subcase) -> Iterator[tuple[NodeType, Attributes]]:
    """ONNX's node, and those of MMCV, which has one with a mask and one without mask and bias."""
    yield find("", "DeformConv"), case.attributes
    modulated = "mask" in case.inputs
    if modulated or "B" not in case.inputs:
        top, left, bottom, right = case.attributes["pads"]
        renamed = {
            "stride": case.attributes["strides"],
            "padding": (top, bottom, left, right),
            "dilation": case.attributes["dilations"],
            "groups": case.attributes["group"],
            "deform_groups": case.attributes["offset_group"],
        }
        for domain in ("", *EXPORTED):
            yield find(domain, f"MMCV{'Modulated' * modulated}DeformConv2d"), renamed


def decodes(case: Subcase) -> Iterator[tuple[NodeType, Attributes]]:
    """The two nodes, where they have the options."""
    options = decoding(case)
    if options is not None:
        yield find("detops", "DecodeBboxV2"), options
        if set(case.attributes) <= {"decode_clip"}:
            yield find("detops", "DecodeBbox"), {key: options[key] for key in case.attributes}


def nodes(case: Subcase) -> Iterator[tuple[NodeType, Attributes]]:
    """The nodes of a case, with their attributes."""
    if case.operator == "DeformConv":
        return convolutions(case)
    if case.operator == "DecodeBbox":
        return decodes(case)
    return ((find(*each), case.attributes) for each in SAME[case.operator])


# What the inputs of a case are called where nodes name them otherwise.
SPELLINGS = {"deltas": "box_predictions", "X": "x", "W": "weight", "B": "bias"}


def inputs_of(operator: NodeType, case: Subcase) -> list[np.ndarray | None]:
    """The inputs of a node in its order."""
    if case.operator not in ("DeformConv", "DecodeBbox"):
        return list(case.inputs.values())
    named = {SPELLINGS.get(name, name): array for name, array in case.inputs.items()}
    found = [named.get(each.argument) for each in operator.inputs]
    while found[-1] is None:
        found.pop()
    return found


CASES = [
    pytest.param(case, operator, attributes, engine, id=f"{case}-{operator.title}-{engine.__name__}")
    for case in subcases(*sorted(path.stem for path in FOLDER.glob("*.json")))
    if case.operator not in ALONE
    for operator, attributes in nodes(case)
    for engine in (run_reference, run_native)[: 1 + operator.native]
]


@pytest.mark.parametrize(("case", "operator", "attributes", "engine"), CASES)
def test_bug_reports(case: Subcase, operator: NodeType, attributes: Attributes, engine: Any) -> None:
    inputs = inputs_of(operator, case)
    proto, given = model(operator, inputs, attributes), feeds(operator, inputs)
    if case.raises:
        with pytest.raises(Exception, match=f"{operator.title}: "):
            engine(proto, given)
        return
    for got, wanted in zip(engine(proto, given), case.expected.values(), strict=True):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(settled(case, got), settled(case, wanted), rtol=case.tolerance, atol=case.tolerance)
