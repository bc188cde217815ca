"""What ``import detops`` loads: NumPy and itself."""

import json

import pytest

import detops
from tests.support.processes import output

MODULES = "import json, sys; import {}; print(json.dumps(sorted(sys.modules)))"
# Modules of Python itself that detops may add to NumPy's.
FEW = 12


def loaded(package: str) -> set[str]:
    return set(json.loads(output(MODULES.format(package))))


def test_import_loads_nothing_heavy() -> None:
    packages = {name.partition(".")[0] for name in loaded("detops")}
    heavy = {"numba", "llvmlite", "scipy", "onnx", "onnxruntime", "onnx_ir", "cupy", "torch", "rich", "PIL", "cuda"}
    assert packages & heavy == set()


def test_import_adds_little_to_numpy() -> None:
    """The cost of an import is that of the modules that it loads: twice NumPy's would be hundreds of modules."""
    numpy, ours = loaded("numpy"), loaded("detops")
    foreign = {name for name in ours - numpy if not name.startswith("detops")}
    assert len(foreign) <= FEW, foreign
    assert len(ours - numpy) < len(numpy) / 2


def test_kernels_are_loaded_when_they_are_called() -> None:
    names = loaded("detops")
    assert not {name for name in names if name.startswith(("detops._numba", "detops._cuda", "detops.onnx"))}
    assert not {name for name in names if name.startswith("detops._cython.")}


def test_packages_are_attributes() -> None:
    """``import detops`` is enough, and what it does not load is loaded when it is asked for."""
    for package in ("graph", "numba", "onnx", "testing"):
        assert package in dir(detops)
        assert output(f"import detops; print(detops.{package}.__name__)").strip() == f"detops.{package}"
    with pytest.raises(AttributeError, match="module 'detops' has no attribute 'torch'"):
        _ = detops.torch


def test_the_error_of_a_backend_is_public() -> None:
    assert detops.BackendError("x").__reduce__()[0] is detops.BackendError
    assert issubclass(detops.BackendError, ImportError)
    assert f"{detops.BackendError.__module__}.{detops.BackendError.__name__}" == "detops.BackendError"
