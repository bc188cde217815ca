"""Write the tables that are made from the code into the pages between their markers.

    python docs/make_tables.py [--check]

``--check`` changes nothing, and fails if a page is out of date.
"""

import argparse
import functools
import inspect
import re
import sys
import textwrap
from pathlib import Path

import detops
import detops.numba
from detops._specification import KERNELS, OPERATORS, PLAIN
from detops.numba import scalar
from detops.runtime._registry import BACKENDS

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from docs import exported_nodes, layers  # noqa: E402  (the folder is no package of the installed ones)

SOURCES = {
    "cython": "src/detops/_cython/{}.pyx",
    "numba": "src/detops/_numba/{}.py",
    "cuda": "cuda/kernels/{}.py",
}
MARKED = "<!-- {name}: made by docs/make_tables.py -->\n{table}<!-- end of {name} -->"


def operators() -> str:
    """Operator by backend, with the first line of its docstring."""
    lines = ["| operator | " + " | ".join(BACKENDS) + " | |", "| --- " * (len(BACKENDS) + 2) + "|"]
    for operator in sorted(OPERATORS):
        marks = ["yes" if has_kernels(operator, backend) else "" for backend in BACKENDS]
        lines.append(f"| {linked(operator)} | " + " | ".join(marks) + f" | {summary(operator)} |")
    return "".join(f"{line}\n" for line in lines)


def plain_functions() -> str:
    """Functions without a kernel, with the first line of their docstrings."""
    lines = ["| function | |", "| --- | --- |", *(f"| {linked(name)} | {summary(name)} |" for name in PLAIN)]
    return "".join(f"{line}\n" for line in lines)


def summary(function: str) -> str:
    """The first line of a docstring."""
    text = str(inspect.getdoc(getattr(detops, function))).partition("\n")[0].rstrip(".")
    return re.sub(r":\w+:`(\w+)`", r"`\1`", text)


def linked(function: str) -> str:
    """A name that leads to its page."""
    return f"[`{function}`](docs/operators/{page_of(function)})"


def page_of(operator: str) -> str:
    """Return the name of the page of an operator: its own, or that of its family, which names it."""
    folder = ROOT / "docs" / "operators"
    if (folder / f"{operator}.md").exists():
        return f"{operator}.md"
    named = re.compile(rf"\b{operator}\b")
    found = [page.name for page in sorted(folder.glob("*.md")) if named.search(page.read_text(encoding="utf-8"))]
    if not found:
        raise LookupError(f"no page in docs/operators names {operator}")
    return found[0]


def signatures(page: str) -> str:
    """The calls of the operators of a page."""
    found = [name for name in (*OPERATORS, *PLAIN) if page_of(name) == page]
    # Its own first; of a family, in the order of the specification.
    found.sort(key=lambda name: f"{name}.md" != page)
    return f"```text\n{''.join(map(call, found))}```\n"


def call(operator: str) -> str:
    """A call of an operator as text: the names of its results, and its parameters with their defaults."""
    signature = inspect.signature(getattr(detops, operator))
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    results = ", ".join(PLAIN.get(operator) or [result.name for result in OPERATORS[operator].results])
    head = f"{results} = detops.{operator}("
    text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))[1:]
    # No line ends inside a default.
    text = re.sub(r"(?<=\d), (?=\d)", ",\N{NO-BREAK SPACE}", text)
    lines = textwrap.wrap(head + text, 110, subsequent_indent=" " * len(head), break_on_hyphens=False)
    return "".join(f"{line}\n" for line in lines).replace("\N{NO-BREAK SPACE}", " ")


def has_kernels(operator: str, backend: str) -> bool:
    """Whether a backend has the source of all kernels of an operator."""
    files = {kernel: ROOT / SOURCES[backend].format(KERNELS[kernel].module) for kernel in OPERATORS[operator].kernels}
    return all(
        path.exists() and re.search(rf"^def {kernel}\(", path.read_text(encoding="utf-8"), re.MULTILINE)
        for kernel, path in files.items()
    )


def njit_forms() -> str:
    """The signatures of the operators for compiled code."""
    forms = [f"{name}{inspect.signature(getattr(detops.numba, name))}\n" for name in sorted(OPERATORS)]
    return f"```text\n{''.join(forms)}```\n"


def formulas() -> str:
    """The functions of one element, with the first line of their docstrings."""
    lines = ["| function | |", "| --- | --- |"]
    for name in scalar.__all__:
        function = getattr(scalar, name)
        names = ", ".join(inspect.signature(function).parameters)
        summary = " ".join(str(inspect.getdoc(function)).partition("\n\n")[0].split())
        lines.append(f"| `{name}({names})` | {summary} |")
    return "".join(f"{line}\n" for line in lines)


TABLES = {
    "README.md": {"operators": operators, "functions": plain_functions},
    "docs/numba.md": {"forms": njit_forms, "formulas": formulas},
    "docs/index.md": {"layers": layers.table},
    "docs/onnxruntime.md": {"exported nodes": exported_nodes.table},
    **{
        f"docs/operators/{page.name}": {"signatures": functools.partial(signatures, page.name)}
        for page in sorted((ROOT / "docs" / "operators").glob("*.md"))
    },
}


def with_tables(page: str) -> str:
    """Return the text of a page with its tables made anew."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, make in TABLES[page].items():
        marked = re.compile(MARKED.format(name=name, table=r"[\s\S]*?"))
        if len(marked.findall(text)) != 1:
            raise ValueError(f"{page}: expected one pair of markers for the table {name}")
        text = marked.sub(lambda _, name=name, make=make: MARKED.format(name=name, table=make()), text)
    return text


def main() -> int:
    """Write or check all pages."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if a page is out of date")
    check = parser.parse_args().check
    stale = [page for page in TABLES if with_tables(page) != (ROOT / page).read_text(encoding="utf-8")]
    for page in stale:
        if check:
            print(f"{page} is out of date: run python docs/make_tables.py", file=sys.stderr)
        else:
            (ROOT / page).write_text(with_tables(page), encoding="utf-8")
            print(f"wrote {page}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
