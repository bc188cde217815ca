"""Docstrings of what is public: numpydoc's rules, what the house wants beside them, and examples that run."""

import ast
import doctest
import inspect
import re
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpydoc.validate import validate

import detops
import detops.graph
import detops.onnx
import detops.testing
from detops._specification import PLAIN
from tests.support import calls
from tests.support.processes import output

ROOT = Path(__file__).parents[1]
MODULES = {module.__name__: module for module in (detops, detops.graph, detops.onnx, detops.testing)}
PUBLIC = {
    f"{path}.{name}" for path, module in MODULES.items() for name in module.__all__ if callable(getattr(module, name))
}
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PAGES = [
    *sorted((ROOT / "docs" / "operators").glob("*.md")),
    *sorted((ROOT / "docs").glob("from_*.md")),
    ROOT / "docs" / "fuzz_your_backend.md",
    ROOT / "docs" / "numba.md",
]
SECTIONS = ("Parameters", "Returns", "Raises", "See Also", "Notes", "References", "Examples")


def public(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(MODULES[module], attribute)


def unwanted() -> set[str]:
    """numpydoc's checks that pyproject.toml switches off."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["numpydoc_validation"]
    return set(settings["checks"]) - {"all"}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_numpydoc(name: str) -> None:
    errors = [error for error in validate(name)["errors"] if error[0] not in unwanted()]
    assert errors == []


@pytest.mark.parametrize("operator", [*calls.ALL, *PLAIN])
def test_what_an_operator_says(operator: str) -> None:
    text = str(inspect.getdoc(getattr(detops, operator)))
    sections = re.findall(r"^(\w[\w ]*)\n-+$", text, re.MULTILINE)
    assert sections == [section for section in SECTIONS if section in sections]
    assert {"Parameters", "Returns", "Raises", "Notes", "Examples"} <= set(sections)
    assert "NaN" in text, "what does a NaN do?"
    assert re.search(r"ONNX|MMCV|torch|CANN", text), "where does the definition come from?"
    assert re.search(r"\d*[Ss]hape", text), "which shapes?"


def run_examples(text: str, name: str, names: dict[str, Any]) -> int:
    """Run the examples of a text; return how many there were."""
    examples = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    said: list[str] = []
    with np.printoptions(legacy=False):
        runner.run(examples, out=said.append)
    assert not runner.failures, "".join(said)
    return len(examples.examples)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_examples_of_docstrings(name: str) -> None:
    text = str(inspect.getdoc(public(name)))
    assert run_examples(text, name, {}) or not inspect.isfunction(public(name)), "no example"


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run_block(block: str, page: str, names: dict[str, Any]) -> None:
    if ">>>" in block:
        run_examples(block, page, names)
    else:
        exec(compile(ast.parse(block), page, "exec"), names)


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in PAGES])
def test_examples_of_pages(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = python_blocks(page)
    assert blocks, "a page has an example that runs"
    names: dict[str, Any] = {}
    for block in blocks:
        run_block(block, page.name, names)


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in PAGES if "from_" in page.stem])
def test_each_difference_has_its_example(page: Path) -> None:
    rows = re.findall(r"^\| (\d+) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    shown = re.findall(r"^>>> .*  # (\d+(?:, \d+)*)", "".join(python_blocks(page)), re.MULTILINE)
    assert rows == [str(number + 1) for number in range(len(rows))]
    assert set(rows) == {number for numbers in shown for number in numbers.split(", ")}


def test_blocks_of_the_readme(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    threads = detops.get_num_threads()
    tour, session = python_blocks(ROOT / "README.md")
    run_block(tour, "README.md", {})
    detops.set_num_threads(threads)
    assert "backend cython" in capsys.readouterr().out
    run_block(session, "README.md", {})


# What the extras test and dask bring beyond cli, which the environment of the README's demo command holds.
NOT_IN_THE_DEMO = ("numba", "llvmlite", "cuda", "distributed", "dask", "hypothesis", "pytest", "psutil", "sympy")


def test_the_demos_environment_runs_the_readme(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.search(r"<!-- commands -->\n```sh\n(.*?)```", readme, re.DOTALL)
    assert commands is not None
    for block in python_blocks(ROOT / "README.md"):
        output(block, blocked=NOT_IN_THE_DEMO)
    for line in ["detops demo -o demo.png", *commands[1].splitlines()]:
        _, *arguments = line.split()
        paths = [
            str(tmp_path / text) if before in ("-o", "--draw") else text for before, text in pairwise([_, *arguments])
        ]
        output("from detops.cli import main; sys.exit(main(sys.argv[1:]))", *paths, blocked=NOT_IN_THE_DEMO)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo.png", "found.npz", "found.png", "fused.onnx"]


def test_no_page_and_no_message_installs_from_an_index() -> None:
    """detops is on none: what names it there cannot work."""
    texts = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py")]
    found = [str(path) for path in [*texts, *ROOT.glob("cuda/**/*.py")] if re.search(INDEX, path.read_text("utf-8"))]
    assert not found


INDEX = r"""pip install [^\n`"]*"?detops(\[|[\s"`]|$)"""


def test_decisions_have_numbers_of_their_own() -> None:
    numbers = [path.name.partition("-")[0] for path in (ROOT / "docs" / "decisions").glob("*.md")]
    assert sorted(numbers) == sorted(set(numbers))


def test_the_checks_can_fail() -> None:
    with pytest.raises(AssertionError, match="Expected"):
        run_examples(">>> 1 + 1\n3\n", "wrong", {})
    assert {code for code, _ in validate("tests.test_docstrings.run_block")["errors"]} >= {"GL08"}
