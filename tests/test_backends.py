"""Which backend a call runs on, what is said where one is missing, and where arrays live."""

import ctypes
import gc
import re
import sys
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import detops
from detops._cuda.arrays import _DLPack
from detops._cuda.device import cuda
from detops.runtime import _registry
from detops.testing.arguments import LAYOUTS
from tests.support import calls
from tests.support.processes import output, run

X = np.array([[1.0, 3.0, 2.0], [0.0, 5.0, 5.0]])


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Backends of the calls that follow."""
    found: list[str] = []
    original = _registry.kernel

    def kernel(name: str, backend: str, dtype: np.dtype) -> Any:
        found.append(backend)
        return original(name, backend, dtype)

    monkeypatch.setattr(_registry, "kernel", kernel)
    return found


def test_the_backend_of_a_call(used: list[str]) -> None:
    detops.cummax(X)
    detops.cummax(X, backend="numba")
    with detops.use_backend("numba"):
        detops.cummax(X)
        detops.cummax(X, backend="cython")
        with detops.use_backend("cuda"):
            detops.cummax(X)
            with detops.use_backend(None):
                detops.cummax(X)
        detops.cummax(X)
    detops.cummax(X)
    assert used == ["cython", "numba", "numba", "cython", "cuda", "cython", "numba", "cython"]


def test_an_exception_restores_the_default(used: list[str]) -> None:
    with pytest.raises(ZeroDivisionError), detops.use_backend("numba"):
        raise ZeroDivisionError
    detops.cummax(X)
    assert used == ["cython"]


@pytest.mark.parametrize("wrong", ["torch", "", 3])
def test_unknown_backends(wrong: Any) -> None:
    message = rf"^backend: expected one of 'cython', 'numba', 'cuda' or None, got {wrong!r}$"
    with pytest.raises(ValueError, match=message):
        detops.cummax(X, backend=wrong)
    with pytest.raises(ValueError, match=message), detops.use_backend(wrong):
        pass


def compiled_by_numba() -> int:
    """How many combinations of types the kernels have been compiled for."""
    modules = [module for name, module in sys.modules.items() if name.startswith("detops._numba.")]
    values = [getattr(value, "__wrapped__", value) for module in modules for value in vars(module).values()]
    return sum(len(getattr(value, "signatures", ())) for value in values)


@pytest.mark.parametrize("operator", calls.ALL)
def test_numba_compiles_nothing_more_for_read_only_arrays(operator: str) -> None:
    case = calls.ordinary(operator)
    calls.call(case, backend="numba")
    before = compiled_by_numba()
    assert before > 0
    given = {name: LAYOUTS["read-only"](array) for name, array in case.cast("float32").items()}
    getattr(detops, operator)(**given, **case.options, backend="numba")
    assert compiled_by_numba() == before


ERROR = "detops.BackendError"
CALL = "import sys, detops; detops.cummax([1.0], backend=sys.argv[1])"


@pytest.mark.parametrize("backend", ["numba", "cuda"])
def test_a_backend_that_is_not_installed(backend: str) -> None:
    last = run(CALL, backend, blocked=("numba",)).stderr.splitlines()[-1]
    assert last == (
        f"detops.BackendError: backend {backend!r} cannot be loaded: No module named 'numba'; "
        f'the extra {backend!r} of detops brings it: in a clone, pip install ".[{backend}]"'
    )
    code = f"import detops\nwith detops.use_backend({backend!r}): pass"
    assert run(code, blocked=("numba",)).stderr.splitlines()[-1] == last


def test_compiled_modules_that_are_missing() -> None:
    last = run(CALL, "cython", blocked=("detops._cython.cpu",)).stderr.splitlines()[-1]
    assert last.startswith(f"{ERROR}: backend 'cython': the compiled modules are missing (")


def test_numba_steps_in_and_says_so_once() -> None:
    code = """
import warnings
import detops
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for _ in range(3):
        print(detops.cummax([1.0, 3.0, 2.0]).indices.tolist())
print(len(said), said[0].category.__name__, said[0].message, said[0].filename)
"""
    *results, last = output(code, blocked=("detops._cython.cpu",)).splitlines()
    assert results == ["[0, 1, 1]"] * 3
    assert last.startswith("1 RuntimeWarning backend 'cython': the compiled modules are missing (")
    # The warning points at the caller's line.
    assert last.endswith("detops uses its Numba backend <string>")


def test_no_backend_at_all() -> None:
    code = "import detops; detops.cummax([1.0])"
    last = run(code, blocked=("detops._cython.cpu", "numba")).stderr.splitlines()[-1]
    assert last.startswith(f"{ERROR}: no CPU backend: backend 'cython'")
    assert "the extra 'numba' of detops brings it" in last


def test_no_gpu() -> None:
    last = run(CALL, "cuda", NUMBA_ENABLE_CUDASIM="0", CUDA_VISIBLE_DEVICES="").stderr.splitlines()[-1]
    assert last.startswith(f"{ERROR}: backend 'cuda' cannot be loaded: Numba finds no CUDA driver")


def test_show_config_without_anything() -> None:
    text = output("import detops; detops.show_config()", blocked=("numba", "onnx", "onnxruntime"))
    rows = dict(line.split(None, 1) for line in text.splitlines() if not line.startswith("backend"))
    assert rows["detops"] == detops.__version__
    assert "not available: backend 'numba' cannot be loaded" in text


def test_show_config_as_a_dict(capsys: pytest.CaptureFixture[str]) -> None:
    rows = detops.show_config("dicts")
    assert not capsys.readouterr().out
    assert Path(rows["path"], "__init__.py").samefile(detops.__file__)
    assert {"processor", "compiler", "instruction set", "onnxruntime", "backend cython"} <= set(rows)
    assert re.search(r"\d+\.\d+", rows["compiler"])
    assert all(rows.values())
    detops.show_config()
    assert dict(re.split(" {2,}", line, maxsplit=1) for line in capsys.readouterr().out.splitlines()) == rows
    with pytest.raises(ValueError, match=r"mode: expected .*'dicts', got 'json'"):
        detops.show_config("json")  # type: ignore[call-overload]


class SpeaksArray:
    def __init__(self, data: np.ndarray) -> None:
        self.data = data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.data


class SpeaksDLPack:
    """An array of another library; ``device`` says where it claims to live, wherever that is."""

    device = (1, 0)

    def __init__(self, data: np.ndarray) -> None:
        self.data = data
        self.streams: list[int | None] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Any:
        self.streams.append(stream)
        return relabeled(self.data.__dlpack__(**options), self.device[0])


class SpeaksOldDLPack(SpeaksDLPack):
    """As before DLPack 1.0, without versions."""

    def __dlpack__(self, stream: int | None = None) -> Any:  # type: ignore[override]
        return super().__dlpack__(stream=stream)


def relabeled(capsule: Any, device: int) -> Any:
    """Change what a DLPack capsule says about the kind of its device, which follows the pointer to the data."""
    point = ctypes.pythonapi.PyCapsule_GetPointer
    point.restype, point.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    versioned = "dltensor_versioned" in repr(capsule)
    start = point(capsule, b"dltensor_versioned" if versioned else b"dltensor")
    # A versioned capsule begins with the version, two pointers and the flags.
    ctypes.c_int32.from_address(start + (32 if versioned else 0) + ctypes.sizeof(ctypes.c_void_p)).value = device
    return capsule


def on_device(kind: type[SpeaksDLPack], number: int) -> type[SpeaksDLPack]:
    return type(kind.__name__, (kind,), {"device": (number, 0)})


@pytest.mark.parametrize("kind", [SpeaksArray, SpeaksDLPack, SpeaksOldDLPack])
@pytest.mark.parametrize("operator", calls.ALL)
def test_arrays_of_other_libraries(operator: str, kind: Any) -> None:
    case = calls.ordinary(operator)
    wanted = calls.call(case)
    given = {name: None if array is None else kind(array) for name, array in case.cast("float32").items()}
    got = getattr(detops, operator)(**given, **case.options)
    got = got if isinstance(got, tuple) else (got,)
    assert all(type(result) is np.ndarray for result in got)
    assert calls.as_bytes(got) == calls.as_bytes(wanted)


@pytest.mark.parametrize("operator", calls.ALL)
def test_memory_mapped_arrays(operator: str, tmp_path: Path) -> None:
    case = calls.ordinary(operator)
    given = {}
    for name, array in case.cast("float32").items():
        np.save(tmp_path / f"{name}.npy", array)
        given[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    got = getattr(detops, operator)(**given, **case.options)
    got = got if isinstance(got, tuple) else (got,)
    assert all(type(result) is np.ndarray for result in got)
    assert calls.as_bytes(got) == calls.as_bytes(calls.call(case))


@pytest.mark.parametrize("operator", calls.ALL)
def test_an_array_that_is_missing(operator: str) -> None:
    case = calls.ordinary(operator)
    first = next(iter(case.arrays))
    with pytest.raises(TypeError, match=f"^{first}: expected an array, got None$"):
        getattr(detops, operator)(**{**case.cast("float32"), first: None}, **case.options)


@pytest.mark.parametrize("operator", calls.ALL)
def test_an_array_of_a_wrong_type(operator: str) -> None:
    case = calls.ordinary(operator)
    first = next(iter(case.arrays))
    for wrong in (case.arrays[first].astype(complex), case.arrays[first].astype("M8[s]")):
        with pytest.raises(
            TypeError, match=f"^{first}: expected (a real )?dtype .*, got {wrong.dtype}".replace("[", r"\[")
        ):
            getattr(detops, operator)(**{**case.cast("float32"), first: wrong}, **case.options)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator's arrays look like a GPU's."""
    kind = type(cuda.to_device(np.zeros(1)))
    describe = property(lambda self: self._ary.__array_interface__)
    monkeypatch.setattr(kind, "__cuda_array_interface__", describe, raising=False)
    # The simulator forbids negative indices into a shape, as kernels do; outside kernels a GPU array's is a tuple.
    monkeypatch.setattr(kind, "shape", property(lambda self: self._ary.shape))

    def as_cuda_array(array: Any) -> Any:
        if isinstance(array, kind):
            return array
        described = SimpleNamespace(owner=array, __array_interface__=array.__cuda_array_interface__)
        return kind(np.asarray(described))

    monkeypatch.setattr(cuda, "as_cuda_array", as_cuda_array, raising=False)


def to_gpu(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: None if array is None else cuda.to_device(array) for name, array in arrays.items()}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("operator", calls.ALL)
def test_gpu_arrays_stay_there(operator: str, dtype: str, used: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    case = calls.ordinary(operator)
    wanted = calls.call(case, dtype, backend="cuda")
    given = to_gpu(case.cast(dtype))
    used.clear()
    kind = type(cuda.to_device(np.zeros(1)))
    large = max(array.size for array in given.values() if array is not None)
    original = kind.copy_to_host

    def copy_to_host(self: Any, *arguments: Any, **options: Any) -> np.ndarray:
        assert self.size < large, "an array was copied to the host"
        return original(self, *arguments, **options)

    monkeypatch.setattr(kind, "copy_to_host", copy_to_host)
    got = getattr(detops, operator)(**given, **case.options)
    got = got if isinstance(got, tuple) else (got,)
    assert set(used) == {"cuda"}
    assert all(type(result) is kind for result in got)
    monkeypatch.setattr(kind, "copy_to_host", original)
    assert calls.as_bytes(tuple(result.copy_to_host() for result in got)) == calls.as_bytes(wanted)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("operator", calls.ALL)
def test_out_on_the_gpu(operator: str) -> None:
    case = calls.ordinary(operator)
    wanted = calls.call(case, backend="cuda")
    out = tuple(cuda.to_device(np.zeros_like(result)) for result in wanted)
    getattr(detops, operator)(**to_gpu(case.cast("float32")), **case.options, out=out if len(out) > 1 else out[0])
    assert calls.as_bytes(tuple(result.copy_to_host() for result in out)) == calls.as_bytes(wanted)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("pool", [detops.roi_align, detops.roi_pool])
def test_boxes_of_each_image_on_the_gpu(pool: Any) -> None:
    features, boxes = np.arange(32.0).reshape(2, 1, 4, 4), [np.float32([[0, 0, 3, 3]]), np.float32([[1, 1, 3, 2]] * 2)]
    wanted = pool(features, boxes, 2)
    assert type(pool(features, [boxes[0], cuda.to_device(boxes[1])], 2)) is type(cuda.to_device(boxes[0]))
    got = pool(cuda.to_device(features), list(map(cuda.to_device, boxes)), 2)
    np.testing.assert_array_equal(got.copy_to_host(), wanted)


@pytest.mark.usefixtures("gpu")
def test_whole_labels_on_the_gpu() -> None:
    boxes, scores, labels = np.array([[0.0, 0, 4, 8]] * 3), np.array([0.5, 0.75, 0.25]), np.array([1.0, 2.0, 1.0])
    got = detops.batched_nms(*map(cuda.to_device, (boxes, scores, labels)), 0.5)
    assert got.copy_to_host().tolist() == [1, 0]


@pytest.mark.usefixtures("gpu")
def test_arrays_of_both_kinds() -> None:
    boxes = np.array([[0.0, 0.0, 4.0, 8.0]])
    on_gpu = cuda.to_device(boxes)
    wanted = detops.encode_bbox(boxes, boxes)
    kind = type(on_gpu)
    assert type(detops.encode_bbox(on_gpu, boxes)) is kind
    assert type(detops.encode_bbox(boxes, on_gpu)) is kind
    assert type(detops.encode_bbox(boxes, boxes, backend="cuda")) is np.ndarray
    out = np.zeros_like(boxes)
    assert detops.encode_bbox(on_gpu, boxes, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    out = cuda.to_device(np.zeros_like(boxes))
    assert detops.encode_bbox(boxes, boxes, out=out, backend="cuda") is out
    np.testing.assert_array_equal(out.copy_to_host(), wanted)


@pytest.mark.usefixtures("gpu")
def test_gpu_arrays_on_a_cpu_backend() -> None:
    on_gpu = cuda.to_device(X)
    for backend in ("cython", "numba"):
        with pytest.raises(
            TypeError, match=rf"^backend '{backend}': expected arrays in host memory, got \w+ on a GPU$"
        ):
            detops.cummax(on_gpu, backend=backend)
    boxes = np.ones((1, 4))
    with pytest.raises(ValueError, match=r"^out: expected an array in host memory, got \w+ on a GPU$"):
        detops.encode_bbox(boxes, boxes, out=cuda.to_device(boxes))
    wide = cuda.to_device(np.zeros((1, 8)))[:, ::2]
    with pytest.raises(ValueError, match=r"^out: expected a C-contiguous and writable array, got one that is not$"):
        detops.encode_bbox(boxes, boxes, out=wide, backend="cuda")


@pytest.mark.usefixtures("gpu")
def test_layouts_on_the_gpu() -> None:
    large = np.zeros((4, 10))
    large[::2, ::2] = np.random.default_rng(0).integers(0, 9, (2, 5))
    wanted = detops.cummax(large[::2, ::2]).indices
    got = detops.cummax(cuda.to_device(large)[::2, ::2]).indices
    np.testing.assert_array_equal(got.copy_to_host(), wanted)
    turned = detops.cummax(cuda.to_device(large)[::2, ::2].T, axis=0).indices
    np.testing.assert_array_equal(turned.copy_to_host(), wanted.T)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("kind", [SpeaksDLPack, SpeaksOldDLPack])
@pytest.mark.parametrize("operator", calls.ALL)
def test_gpu_arrays_that_only_speak_dlpack(operator: str, kind: type[SpeaksDLPack], used: list[str]) -> None:
    case = calls.ordinary(operator)
    wanted = calls.call(case, backend="cuda")
    given = {n: None if a is None else on_device(kind, 2)(a) for n, a in case.cast("float32").items()}
    used.clear()
    got = getattr(detops, operator)(**given, **case.options)
    got = got if isinstance(got, tuple) else (got,)
    assert set(used) == {"cuda"}
    assert all(type(result) is type(cuda.to_device(np.zeros(1))) for result in got)
    assert calls.as_bytes(tuple(result.copy_to_host() for result in got)) == calls.as_bytes(wanted)
    # Kernels run on the legacy default stream: the array's own library has to make it wait.
    assert {stream for array in given.values() if array is not None for stream in array.streams} == {1}


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("device", [2, 13])
@pytest.mark.parametrize("x", [X[:, ::-2], X.T, X[:0], np.array(2.5), X[0] > 2, np.arange(3, dtype=np.int16)])
def test_layouts_and_dtypes_of_dlpack_on_the_gpu(x: np.ndarray, device: int) -> None:
    wanted = detops.cummax(x)
    got = detops.cummax(on_device(SpeaksDLPack, device)(x))
    assert calls.as_bytes(tuple(result.copy_to_host() for result in got)) == calls.as_bytes(wanted)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("count", [0, 2])
def test_out_that_only_speaks_dlpack(count: int) -> None:
    boxes, memory = np.array([[0.0, 0.0, 4.0, 8.0]] * count).reshape(-1, 4), np.full((count, 4), 7.0)
    out = on_device(SpeaksDLPack, 2)(memory)
    assert detops.encode_bbox(on_device(SpeaksDLPack, 2)(boxes), boxes, out=out) is out
    np.testing.assert_array_equal(memory, 0)


def test_the_strides_of_an_empty_array_say_nothing() -> None:
    """Libraries fill them in as they like, and Numba would not take zeros for contiguous."""
    described = _DLPack("x", on_device(SpeaksDLPack, 2)(np.zeros((4, 0)))).__cuda_array_interface__
    assert (described["shape"], described["strides"]) == ((4, 0), None)


@pytest.mark.usefixtures("gpu")
def test_memory_that_came_by_dlpack_is_given_back() -> None:
    class Memory(np.ndarray):
        """NumPy's own arrays cannot be watched."""

    memory = X.copy().view(Memory)
    watched = weakref.ref(memory)
    result = detops.cummax(on_device(SpeaksDLPack, 2)(memory))
    del memory
    gc.collect()
    assert watched() is None
    assert result.indices.copy_to_host().tolist() == [[0, 1, 1], [0, 1, 2]]


@pytest.mark.usefixtures("gpu")
def test_dlpack_that_is_refused() -> None:
    class Refuses(SpeaksDLPack):
        device = (2, 0)

        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("it needs a gradient")

    with pytest.raises(TypeError, match=r"^x: expected an array, got Refuses \(it needs a gradient\)$"):
        detops.cummax(Refuses(X))
    # A kind of device that neither NumPy nor CUDA reads: Metal.
    with pytest.raises(TypeError, match=r"^x: expected an array, got SpeaksDLPack \(.*device.*\)$"):
        detops.cummax(on_device(SpeaksDLPack, 8)(X))
    for backend in ("cython", "numba"):
        with pytest.raises(
            TypeError, match=rf"^backend '{backend}': expected arrays in host memory, got SpeaksDLPack "
        ):
            detops.cummax(on_device(SpeaksDLPack, 2)(X), backend=backend)


@pytest.mark.usefixtures("gpu")
def test_dlpack_without_what_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba's own CUDA target, without numba-cuda, brings no cuda.core."""
    monkeypatch.setitem(sys.modules, "cuda.core.utils", None)
    with pytest.raises(ImportError, match=r"^x: .* needs cuda\.core \(.*\); the extra 'cuda' of detops brings it"):
        detops.cummax(on_device(SpeaksDLPack, 2)(X))


@pytest.mark.usefixtures("gpu")
def test_results_take_the_form_of_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy's arrays come back as CuPy's, torch's as torch's, and what their library does next waits for them."""
    made: list[tuple[str, Any]] = []
    waits = SimpleNamespace(
        wait_event=lambda event: made.append(("waits for", event)), wait_stream=lambda s: made.append(("waits for", s))
    )
    null = SimpleNamespace(record=lambda: "event")
    streams = SimpleNamespace(get_current_stream=lambda: waits, Stream=SimpleNamespace(null=null))
    cupy = SimpleNamespace(asarray=lambda array: made.append(("cupy", None)) or array, cuda=streams)
    streams_of_torch = SimpleNamespace(current_stream=lambda device: waits, default_stream=lambda device: "default")
    torch = SimpleNamespace(as_tensor=lambda array, device: made.append(("torch", device)) or array)
    for name, module in {"cupy": cupy, "cupy.cuda": streams, "torch": torch, "torch.cuda": streams_of_torch}.items():
        monkeypatch.setitem(sys.modules, name, module)
    torch.cuda = streams_of_torch
    kind = type(cuda.to_device(X))
    for module, device, awaited in (("cupy", None, "event"), ("torch", "cuda:1", "default")):
        like = type("ndarray", (kind,), {"__module__": f"{module}.core", "device": device})
        detops.cummax(like(X))
        assert made == [(module, device)] * 2 + [("waits for", awaited)]
        made.clear()
