"""Settings of the whole test run."""

import os
import sys
from collections.abc import Iterator
from typing import Any

# CUDA kernels run in Numba's simulator, which has to be chosen before numba is imported. The tests that compile
# for real GPUs do so in a process of their own.
os.environ.setdefault("NUMBA_ENABLE_CUDASIM", "1")

import hypothesis
import pytest

from tests.support.profile import PROFILE

hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, max_examples=60, print_blob=True)
hypothesis.settings.register_profile("nightly", deadline=None, max_examples=3000, print_blob=True)
hypothesis.settings.load_profile(PROFILE)


@pytest.fixture(autouse=True)
def _warnings_of_simulated_threads() -> None:
    """In the simulator device code runs on NumPy's scalars, which warn where a GPU gives inf or NaN in silence."""
    import warnings

    for text in ("overflow", "divide by zero", "invalid value", "underflow"):
        warnings.filterwarnings("ignore", message=f"{text} encountered in", category=RuntimeWarning)


@pytest.fixture(autouse=True)
def _schemas_of_one_test() -> Iterator[None]:
    """The package onnx has one register for the whole process: what a test or an example adds, no other test sees."""
    yield
    if (schemas := sys.modules.get("detops.onnx._schemas")) is not None:
        schemas.deregister_schemas()


def _group(nodeid: str) -> str:
    """Tests that share what is slow run in one process: what Numba compiles, launches, and what a function prepares."""
    module, _, name = nodeid.partition("::")
    if "numba" in name or "compiled_code" in name:
        return "numba"
    if "cuda" in name or module.endswith("test_ptx.py"):
        return "cuda"
    return nodeid.partition("[")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand tests out by group. Not by ``xdist_group``: xdist 3.8 takes no notice of it under pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _group(nodeid)

    return Groups(config, log) if config.getvalue("dist") == "loadscope" else None
