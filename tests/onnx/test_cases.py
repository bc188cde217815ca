"""Bug reports with the right values, through nodes of both engines."""

import numpy as np
import pytest

from detops.onnx._table import OPERATORS, Operator
from tests.onnx.models import model, run_native, run_reference
from tests.support.json_cases import Subcase, subcases

CASES = [
    case
    for case in subcases("gridsample_cubic_nearest_rules", "roialign_sampling_ratio_negative")
    if case.operator in ("grid_sampler", "MMCVRoiAlign")
]


@pytest.mark.parametrize("engine", [run_reference, run_native])
@pytest.mark.parametrize("domain", ["mmcv", "mmdeploy"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_bug_reports(case: Subcase, domain: str, engine) -> None:
    operator = find(domain, case.operator)
    proto = model(operator, list(case.inputs.values()), case.attributes)
    (got,), (wanted,) = engine(proto, case.inputs), case.expected.values()
    np.testing.assert_allclose(got, wanted, rtol=case.tolerance, atol=case.tolerance)


def find(domain: str, name: str) -> Operator:
    (operator,) = (each for each in OPERATORS if (each.domain, each.name) == (domain, name))
    return operator
