"""The shared core as its four compilers see it: each build takes columns of arguments, gives columns of results."""

import ast
import importlib.util
import math
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import numba
import numpy as np
from Cython.Build import cythonize
from setuptools import Distribution, Extension

from detops import _codes, _core
from detops._core import _shim, scalar
from detops._cuda.device import cuda, jit, launch
from detops._cython.cpu import instruction_sets
from detops.onnx import _generated
from tests.support.core_subset import FOLDER, Signature, core_sources, signatures

ELEMENTS = {"float32": "float", "float64": "double"}
FLAGS = ["-O2", "-g0", "-ffp-contract=off", "-Wno-unused-function"]
# Where the processor could fuse a product with a sum, it must not have been told to.
FUSING = ["-mavx2", "-mfma"] if "avx2" in instruction_sets() else []
ARGUMENTS = {"real": "real", "element": "real", "index": "Py_ssize_t", "truth": "bint"}

Columns = list[np.ndarray]
Build = Callable[[str, Columns], Columns]


def all_signatures() -> dict[str, Signature]:
    """Signatures of the core's functions by name, without the scalar functions."""
    everything = signatures(core_sources())
    return {name: everything[name] for name in _core.functions()}


SIGNATURES = all_signatures()


class OutOfDomain(ValueError):
    """An argument that a function's docstring excludes: what C makes of it is undefined."""


def whole(x: float) -> int:
    """``int()``, but it refuses what has no meaning in C."""
    if not math.isfinite(x) or not -(2**63) <= x < 2**63:
        raise OutOfDomain
    return int(x)


def results_of(signature: Signature) -> tuple[str, ...]:
    """The kinds of the results."""
    return signature.result if isinstance(signature.result, tuple) else (signature.result,)


def columns(signature: Signature, rows: Sequence[object], dtype: str) -> Columns:
    """Results of many calls, an array for each of a function's results."""
    kinds = {"real": dtype, "element": dtype, "index": "int64", "truth": "bool"}
    tuples = [row if isinstance(row, tuple) else (row,) for row in rows]
    return [
        np.array([row[i] for row in tuples], kinds[kind]).reshape(len(rows))
        for i, kind in enumerate(results_of(signature))
    ]


def scalars(signature: Signature, arguments: Columns) -> list[tuple[object, ...]]:
    """Columns as tuples of arguments: NumPy's numbers for reals, Python's for indices."""
    lists = [
        list(column) if kind in ("real", "element") else column.tolist()
        for kind, column in zip(signature.arguments, arguments, strict=True)
    ]
    return list(zip(*lists, strict=True))


def plain_functions() -> dict[str, Callable]:
    """The core's functions as Python runs them, with an ``int`` that knows where C's is undefined."""
    namespace: dict = {**_core.defined(scalar), "cython": _shim, "int": whole}
    namespace |= {"real": float, "element": float}
    namespace |= {codes.__name__: codes for codes in _codes.CODES}
    for name, source in core_sources().items():
        tree = ast.parse(source)
        tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        exec(compile(tree, f"{name}.py", "exec"), namespace)
    return namespace


def numba_build(dtype: str) -> Build:
    """Compiled by ``@njit``."""

    def run(name: str, arguments: Columns) -> Columns:
        function = numba.njit(error_model="numpy")(_core.functions()[name])
        signature = SIGNATURES[name]
        found = columns(signature, [function(*row) for row in scalars(signature, arguments)], dtype)
        for compiled in function.nopython_signatures:
            returned = getattr(compiled.return_type, "types", (compiled.return_type,))
            for kind, got in zip(results_of(signature), returned, strict=True):
                assert kind != "real" or str(got) == dtype, f"{name} gives {got} for {dtype}"
        return found

    return run


def simulator_build(dtype: str) -> Build:
    """Inside a kernel in the CUDA simulator."""

    def run(name: str, arguments: Columns) -> Columns:
        signature = SIGNATURES[name]
        function = _core.functions()[name]
        count = len(arguments[0])
        found = columns(signature, [(0,) * len(results_of(signature))] * count, dtype)

        def kernel(*arrays):
            given, written = arrays[: len(arguments)], arrays[len(arguments) :]
            for i in range(cuda.grid(1), count, cuda.gridsize(1)):
                # An index is a Python number to a kernel that counts, and so it is here.
                row = [
                    array[i] if kind in ("real", "element") else array[i].item()
                    for kind, array in zip(signature.arguments, given, strict=True)
                ]
                results = function(*row)
                for array, value in zip(written, results if isinstance(results, tuple) else (results,), strict=True):
                    array[i] = value

        launch(jit(kernel), count, *arguments, *found)
        return found

    return run


def wrapper(name: str, signature: Signature) -> str:
    """Cython text of a Python function around a core function."""
    kinds = [str(kind) for kind in signature.arguments]
    head = ", ".join(f"{ARGUMENTS[kind]} a{i}" for i, kind in enumerate(kinds))
    call = ", ".join(f"<element> a{i}" if kind == "element" else f"a{i}" for i, kind in enumerate(kinds))
    cast = "<real> " if signature.result == "element" else ""
    return f"\ndef call_{name}({head}):\n    return {cast}{name}({call})\n"


def compile_cython(folder: Path) -> dict[tuple[str, bool], ModuleType]:
    """Compile the core by Cython: a module for each type, with and without fusing instructions."""
    sources = core_sources()
    includes = "".join(f'include "{FOLDER / name}.py"\n' for name in sources)
    text = 'include "scalar.pxi"\n' + includes + "".join(wrapper(*item) for item in SIGNATURES.items())
    (folder / "core.pyx").write_text(text)
    _generated.write(folder)
    (translated,) = cythonize(
        Extension("core", [str(folder / "core.pyx")]),
        include_path=[str(FOLDER.parent / "_cython"), str(folder)],
        build_dir=str(folder),
        compiler_directives={"language_level": 3, "cdivision": True},
        quiet=True,
    )
    variants = [(dtype, fusing) for dtype in ELEMENTS for fusing in (False, True)]
    extensions = [
        Extension(
            f"{dtype}_{fusing}.core",
            translated.sources,
            define_macros=[("DETOPS_ELEMENT", ELEMENTS[dtype]), (f"DETOPS_IS_{dtype.upper()}", "1")],
            extra_compile_args=FLAGS + (FUSING if fusing else []),
        )
        for dtype, fusing in variants
    ]
    built = {}
    for variant, extension in zip(variants, extensions, strict=True):
        command = Distribution({"ext_modules": [extension]}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(folder), str(folder / extension.name)
        command.ensure_finalized()
        command.run()
        path = folder / extension.name.replace(".", "/")
        spec = importlib.util.spec_from_file_location("core", f"{path}{sysconfig.get_config_var('EXT_SUFFIX')}")
        assert spec is not None
        assert spec.loader is not None
        built[variant] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(built[variant])
    return built


def cython_build(module: ModuleType, dtype: str) -> Build:
    """Compiled by Cython and the C compiler."""

    def run(name: str, arguments: Columns) -> Columns:
        signature = SIGNATURES[name]
        call = getattr(module, f"call_{name}")
        return columns(signature, [call(*row) for row in scalars(signature, arguments)], dtype)

    return run
