"""What pyproject.toml asks for is used: a package that nothing imports is not required."""

import ast
import functools
import re
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

import detops

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CLASSIFIERS = PROJECT["project"]["classifiers"]
GROUPS = {
    "build-system": PROJECT["build-system"]["requires"],
    "dependencies": PROJECT["project"]["dependencies"],
    **PROJECT["project"]["optional-dependencies"],
}
REQUIRED = sorted({re.split(r"[\[<>=]", text)[0] for text in chain(*GROUPS.values())} - {"detops"})

# What a package is imported as, where its module has another name.
MODULES = {
    "ensemble-boxes": "ensemble_boxes",
    "myst-parser": "myst_parser",
    "numba-cuda": "numba.cuda",
    "opencv-python-headless": "cv2",
    "pillow": "PIL",
    "pytest-xdist": "xdist",
    "scikit-image": "skimage",
    "cython": "Cython",
}
# Run as commands or named in settings, and where.
NAMED = {
    "asv": "CONTRIBUTING.md",
    "build": ".ci/run",
    "furo": "docs/conf.py",
    "mypy": ".ci/run",
    "myst-parser": "docs/conf.py",
    "ruff": ".ci/run",
}
SOURCES = ("setup.py", "src", "cuda", "tests", "docs", "examples", "asv_bench")


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules that a file imports, by a statement or by name through a function."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (module, *(f"{module}.{name.name}" for name in names))
            case ast.Call(
                func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(module)), *_]
            ):
                if name in ("import_module", "importorskip", "need"):
                    yield module


@functools.cache
def all_imported() -> set[str]:
    """What the Python files of the repository import, with the packages that these modules lie in."""
    files = chain(*([ROOT / part] if part.endswith(".py") else (ROOT / part).rglob("*.py") for part in SOURCES))
    modules = set(chain(*(imported(ast.parse(file.read_text(encoding="utf-8"))) for file in files)))
    return modules | {module.partition(".")[0] for module in modules}


@pytest.mark.parametrize("package", REQUIRED)
def test_requirement_is_used(package: str) -> None:
    module = MODULES.get(package, package)
    if package in NAMED:
        assert re.search(rf"\b{module}\b", (ROOT / NAMED[package]).read_text(encoding="utf-8"))
    else:
        assert module in all_imported()


def test_each_way_to_import_is_seen() -> None:
    text = "import a.b, c\nfrom d import e\nfrom . import f\ndef g():\n    need('h', 'x')\n    len('i')"
    assert list(imported(ast.parse(text))) == ["a.b", "c", "d", "d.e", "h"]


def test_what_else_states_the_version_of_detops_or_python() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {detops.__version__}\n" in citation
    stated = re.findall(r"^Programming Language :: Python :: (3\.\d+)$", "\n".join(CLASSIFIERS), re.MULTILINE)
    assert f">={stated[0]}" == PROJECT["project"]["requires-python"]
    assert f"3.11 to {stated[-1]} were tried" in (ROOT / "README.md").read_text(encoding="utf-8")
