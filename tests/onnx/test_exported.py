"""The nodes that MMCV and MMDeploy write, as their sources write them."""

from typing import Any

import numpy as np
import pytest

from docs import exported_nodes
from tests.onnx.models import run_reference
from tests.onnx.test_report import opened


@pytest.mark.parametrize("row", exported_nodes.rows(), ids=exported_nodes.title)
def test_exported_nodes(row: dict[str, Any]) -> None:
    """A node that ONNX Runtime opens runs, and ONNX's evaluator computes the same."""
    proto = exported_nodes.model(row)
    session = opened(proto.SerializeToString())
    if session is None:
        return
    rng = np.random.default_rng(0)
    feeds = {name: rng.integers(0, 2, shape).astype(dtype) for name, (dtype, shape) in row["inputs"].items()}
    if "rois" in feeds:
        feeds["rois"][:, 0] = 0  # there is one image
    results = session.run(None, feeds)
    assert [result.dtype.name for result in results] == row["outputs"]
    for result, wanted in zip(results, run_reference(proto, feeds), strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_each_operator_of_the_table_is_written_by_someone() -> None:
    """No operator of these domains that no exporter writes; the others are ours or ONNX's."""
    from detops.onnx._table import OPERATORS

    written = {(row["domain"], row["operator"]) for row in exported_nodes.rows()}
    names = {name for _, name in written}
    assert {operator.name for operator in OPERATORS if operator.domain in ("mmcv", "mmdeploy")} <= names
