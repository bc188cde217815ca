"""Each vector instruction set gives the same indices, and the same floats within rounding."""

import itertools

import numpy as np
import pytest

from detops._cython.cpu import instruction_sets
from tests.support import calls
from tests.support.processes import output, run

CODE = """
import sys
import numpy as np
import detops
from tests.support import calls
found = {}
for operator in calls.ALL:
    for dtype in ("float32", "float64"):
        for i, result in enumerate(calls.call(calls.ordinary(operator, calls.LARGE), dtype, backend="cython")):
            found[f"{operator} {dtype} {i}"] = result
np.savez(sys.argv[1], **found)
print(detops.runtime._registry.instruction_set())
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, np.ndarray]]:
    """Results of all operators, by instruction set and by operator, dtype and position."""
    found = {}
    for isa in instruction_sets():
        path = tmp_path_factory.mktemp("isa") / f"{isa}.npz"
        assert output(CODE, str(path), DETOPS_ISA=isa) == isa
        with np.load(path) as file:
            found[isa] = dict(file)
    return found


@pytest.mark.parametrize("operator", calls.ALL)
def test_instruction_sets_agree(operator: str, results: dict[str, dict[str, np.ndarray]]) -> None:
    names = [name for name in results["baseline"] if name.startswith(f"{operator} ")]
    assert names
    for isa, name in itertools.product(results, names):
        got, wanted = results[isa][name], results["baseline"][name]
        assert got.dtype == wanted.dtype
        if got.dtype.kind == "f":
            tolerance = 16 * float(np.finfo(got.dtype).eps) * float(np.abs(wanted).max(initial=1))
            np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance, err_msg=f"{isa} {name}")
        else:
            np.testing.assert_array_equal(got, wanted, err_msg=f"{isa} {name}")


def test_an_instruction_set_that_is_not_there() -> None:
    done = run("import detops; detops.cummax([1.0])", DETOPS_ISA="sse9")
    wanted = f"ValueError: DETOPS_ISA: expected one of {', '.join(instruction_sets())}, got 'sse9'"
    assert done.stderr.splitlines()[-1] == wanted
