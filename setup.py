"""Build the compiled kernels: each .pyx once, compiled per element type and vector instruction set."""

import copy
import gzip
import importlib
import os
import platform
import sys
import tarfile
from pathlib import Path
from types import ModuleType

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

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
ISAS = ("baseline", *VECTOR) if X86 and os.environ.get("DETOPS_BUILD") != "baseline" else ("baseline",)
ALL_ISAS_OF_FLOATS = [(element, isa) for element in FLOATS for isa in ISAS]
BASELINE_OF_INTEGERS = [(element, "baseline") for element in INTEGERS]

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


def of_detops(name: str) -> ModuleType:
    """Import a module of detops that needs nothing but the standard library; detops as a whole cannot be yet."""
    for package in ("detops", "detops.onnx"):
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [f"src/{package.replace('.', '/')}"]
    module = importlib.import_module(f"detops.{name}")
    for imported in [each for each in sys.modules if each.partition(".")[0] == "detops"]:
        del sys.modules[imported]
    return module


def builds() -> dict[str, list[tuple[str, str]]]:
    """The builds of each module of kernels. Where vectors gain little, one instruction set is enough."""
    kernels = of_detops("_specification").KERNELS.values()
    integers = {kernel.module for kernel in kernels if kernel.integers}
    double = {kernel.module for kernel in kernels if kernel.double}
    return {
        module: [build for build in ALL_ISAS_OF_FLOATS if build[0] == "float64" or module not in double]
        + (BASELINE_OF_INTEGERS if module in integers else [])
        for module in dict.fromkeys(kernel.module for kernel in kernels)
    }


def extensions() -> list[Extension]:
    """One C file per .pyx; the element type is a macro, the instruction set a flag, and both name the package."""
    of_detops("onnx._generated").write(GENERATED)
    built = []
    for module, variants in builds().items():
        (translated,) = cythonize(Extension(module, [f"src/detops/_cython/{module}.pyx"]), **OPTIONS)
        built += [
            Extension(
                f"detops._cython.{element}_{isa}.{module}",
                translated.sources,
                define_macros=[("DETOPS_ELEMENT", ELEMENTS[element]), (f"DETOPS_IS_{element.upper()}", "1")],
                extra_compile_args=STRICT + (CONTRACT if module in CONTRACTED else []) + WARNINGS + VECTOR.get(isa, []),
            )
            for element, isa in variants
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


class BuildVariants(build_ext):
    """Builds of one C file side by side: each has a folder of its own, so that they can be built at once."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extension(self, ext: Extension) -> None:
        variant = copy.copy(self)
        variant.build_temp = os.path.join(self.build_temp, ext.name)
        super(BuildVariants, variant).build_extension(ext)

    def copy_extensions_to_source(self) -> None:
        # setuptools does not make the folder of a module that is built in place.
        packages = self.get_finalized_command("build_py")
        for ext in self.extensions:
            os.makedirs(packages.get_package_dir(ext.name.rpartition(".")[0]), exist_ok=True)
        super().copy_extensions_to_source()


class ReproducibleSdist(sdist):
    """With SOURCE_DATE_EPOCH, as other tools have it, the same files are an archive of the same bytes."""

    def make_archive(self, base_name: str, format: str, root_dir=None, base_dir=None, owner=None, group=None) -> str:
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if epoch is None or format != "gztar":
            return super().make_archive(base_name, format, root_dir, base_dir, owner, group)

        def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime = int(epoch)
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            return member

        name = f"{base_name}.tar.gz"
        self.mkpath(os.path.dirname(name))
        with (
            open(name, "wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=int(epoch)) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            archive.add(Path(root_dir or ".") / base_dir, base_dir, filter=plain)  # a folder's names are sorted
        return name


setup(
    packages=[*find_packages("src"), "detops._cuda"],
    package_dir={"": "src", "detops._cuda": "cuda/kernels"},
    # Files that are no modules are named here: by default setuptools would install all that MANIFEST.in brings.
    include_package_data=False,
    package_data={"detops": ["py.typed", "data/digits/*"], "detops._cython": ["*.pyi"], "detops.onnx": ["*.pyi"]},
    ext_modules=extensions(),
    cmdclass={"build_ext": BuildVariants, "sdist": ReproducibleSdist},
    zip_safe=False,
)
