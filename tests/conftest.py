"""Settings of the whole test run."""

import os

# CUDA kernels run in Numba's simulator, which has to be chosen before numba is imported. The tests that compile
# for real GPUs do so in a process of their own.
os.environ.setdefault("NUMBA_ENABLE_CUDASIM", "1")

import hypothesis
import pytest

hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, max_examples=60, print_blob=True)
hypothesis.settings.register_profile("nightly", deadline=None, max_examples=3000, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(autouse=True)
def _warnings_of_simulated_threads() -> None:
    """In the simulator device code runs on NumPy's scalars, which warn where a GPU gives inf or NaN in silence."""
    import warnings

    for text in ("overflow", "divide by zero", "invalid value", "underflow"):
        warnings.filterwarnings("ignore", message=f"{text} encountered in", category=RuntimeWarning)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep in one process what shares something slow: what Numba compiles, and the builds of two modules."""
    for item in items:
        module, _, name = item.nodeid.partition("::")
        if "numba" in name or "compiled_code" in name:
            item.add_marker(pytest.mark.xdist_group("numba"))
        elif module.endswith(("test_ptx.py", "test_core_agreement.py")):
            item.add_marker(pytest.mark.xdist_group(module))
