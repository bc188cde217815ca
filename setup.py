"""Build the compiled kernels: each .pyx once, compiled per element type and vector instruction set."""

import copy
import importlib
import os
import platform
import sys
from pathlib import Path
from types import ModuleType

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

ELEMENTS = {
    "float32": "float",
    "float64": "double",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
}
FLOATS = ("float32", "float64")
INTEGERS = tuple(name for name in ELEMENTS if name not in FLOATS)

WINDOWS = sys.platform == "win32"
X86 = platform.machine().lower() in ("x86_64", "amd64")
VECTOR = {
    "avx2": ["/arch:AVX2"] if WINDOWS else ["-mavx2", "-mfma", "-mf16c"],
    "avx512": ["/arch:AVX512"]
    if WINDOWS
    else [
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        "-mfma",
        "-mf16c",
        "-mprefer-vector-width=512",
        "-mtune=skylake-avx512",
    ],
}
ISAS = ("baseline", *VECTOR) if X86 else ("baseline",)
ALL_ISAS_OF_FLOATS = [(element, isa) for element in FLOATS for isa in ISAS]
BASELINE_OF_INTEGERS = [(element, "baseline") for element in INTEGERS]

# kernel module: its builds. Where vectors gain little, one instruction set is enough.
KERNELS = {
    "boxes": ALL_ISAS_OF_FLOATS,
    "cumulative": ALL_ISAS_OF_FLOATS + BASELINE_OF_INTEGERS,
    "instance_norm": ALL_ISAS_OF_FLOATS,
    "nms": ALL_ISAS_OF_FLOATS,
    "roi_align": ALL_ISAS_OF_FLOATS,
    "roi_pool": ALL_ISAS_OF_FLOATS,
    "deform_conv": ALL_ISAS_OF_FLOATS,
    "grid_sample": ALL_ISAS_OF_FLOATS,
    "scatter_nd": ALL_ISAS_OF_FLOATS + BASELINE_OF_INTEGERS,
}

# A decision must not depend on how a compiler fuses a multiplication into an addition: no contraction. Integers wrap
# around, as scatter_nd says of its reductions: Python's own flags say so too, but CFLAGS displaces them.
STRICT = (
    ["/O2", "/fp:precise"]
    if WINDOWS
    else ["-O3", "-fwrapv", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-g0"]
)
# Where no sum of products decides an index, a matrix product may be as fast as the machine allows.
CONTRACTED = {"deform_conv"}
CONTRACT = [] if WINDOWS else ["-ffp-contract=fast"]
WARNINGS = [] if WINDOWS else ["-Wno-unused-function", "-Wno-unused-variable", "-Wno-tautological-compare"]
# Cython text that is made from Python's: the folder is among those that .pyx files include from.
GENERATED = Path("build/cython/generated")
OPTIONS = {
    "build_dir": "build/cython",
    "include_path": ["src/detops/_cython", str(GENERATED)],
    "compiler_directives": {
        "language_level": 3,
        "boundscheck": False,
        "wraparound": False,
        "cdivision": True,
        "initializedcheck": False,
    },
}


def generate() -> None:
    """Write the Cython text that is made from modules of detops, which cannot be imported as a whole yet."""
    for package in ("detops", "detops.onnx"):
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [f"src/{package.replace('.', '/')}"]
    importlib.import_module("detops._generated").write(GENERATED)
    for name in [name for name in sys.modules if name.partition(".")[0] == "detops"]:
        del sys.modules[name]


def extensions() -> list[Extension]:
    """One C file per .pyx; the element type is a macro, the instruction set a flag, and both name the package."""
    generate()
    built = []
    for module, builds in KERNELS.items():
        (translated,) = cythonize(Extension(module, [f"src/detops/_cython/{module}.pyx"]), **OPTIONS)
        built += [
            Extension(
                f"detops._cython.{element}_{isa}.{module}",
                translated.sources,
                define_macros=[("DETOPS_ELEMENT", ELEMENTS[element]), (f"DETOPS_IS_{element.upper()}", "1")],
                extra_compile_args=STRICT + (CONTRACT if module in CONTRACTED else []) + WARNINGS + VECTOR.get(isa, []),
            )
            for element, isa in builds
        ]
    for module in ("cpu", "memory", "threads"):
        built += cythonize(Extension(f"detops._cython.{module}", [f"src/detops/_cython/{module}.pyx"]), **OPTIONS)
    # Arguments of kernels look the same for all element types, so the library needs no particular one.
    built += cythonize(
        Extension(
            "detops.onnx._native",
            ["src/detops/onnx/_native.pyx"],
            define_macros=[("DETOPS_ELEMENT", "float"), ("DETOPS_IS_FLOAT32", "1")],
            extra_compile_args=STRICT + WARNINGS,
            export_symbols=["RegisterCustomOps"],
        ),
        **OPTIONS,
    )
    return built


# What type checkers read about a kernel module. All its builds look alike, so one file serves them all.
STUBS = "src/detops/_cython/stubs"


class BuildVariants(build_ext):
    """Builds of one C file side by side: each has a folder of its own, so that they can be built at once."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extension(self, ext: Extension) -> None:
        variant = copy.copy(self)
        variant.build_temp = os.path.join(self.build_temp, ext.name)
        super(BuildVariants, variant).build_extension(ext)
        self._copy_stub(ext, os.path.dirname(self.get_ext_fullpath(ext.name)))

    def copy_extensions_to_source(self) -> None:
        # setuptools does not make the folder of a module that is built in place.
        packages = self.get_finalized_command("build_py")
        for ext in self.extensions:
            folder = packages.get_package_dir(ext.name.rpartition(".")[0])
            os.makedirs(folder, exist_ok=True)
            self._copy_stub(ext, folder)
        super().copy_extensions_to_source()

    def _copy_stub(self, ext: Extension, folder: str) -> None:
        stub = os.path.join(STUBS, ext.name.rpartition(".")[2] + ".pyi")
        if os.path.exists(stub):
            self.copy_file(stub, folder)


setup(
    packages=[*find_packages("src"), "detops._cuda"],
    package_dir={"": "src", "detops._cuda": "cuda/kernels"},
    # What is no module is named here: by default setuptools would install all that MANIFEST.in brings, sources too.
    include_package_data=False,
    package_data={"detops": ["py.typed", "data/digits/*"], "detops._cython": ["*.pyi"], "detops.onnx": ["*.pyi"]},
    ext_modules=extensions(),
    cmdclass={"build_ext": BuildVariants},
    zip_safe=False,
)
