"""Which part of the library imports which, read from its sources, and the layers that follow from it."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "detops"
# A part is a folder, or a module beside the folders; these modules know nothing of the library, and all may know them.
ASIDE = frozenset(
    path.stem for path in SOURCE.glob("*.py") if path.stem in ("_extras", "_files", "_messages", "_version")
)


@functools.cache
def imports() -> dict[str, frozenset[str]]:
    """Each part, and what it imports of the others, at any time."""
    found: dict[str, set[str]] = {}
    for path in [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.p?[xi]"), *(ROOT / "cuda" / "kernels").glob("*.py")]:
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py") if SOURCE in path.parents else "_cuda"
        found.setdefault(part, set()).update(_imported(path))
    return {part: frozenset(others - {part} - ASIDE) for part, others in sorted(found.items()) if part not in ASIDE}


def _imported(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":  # of Cython's text only the lines that are Python's, too
        text = "\n".join(line for line in text.splitlines() if line.startswith("from detops"))
    found = set()
    for node in _walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "detops":
            found |= {_part_of(name.name) for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("detops."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {name.name.split(".")[1] for name in node.names if name.name.startswith("detops.")}
            found |= {"__init__" for name in node.names if name.name == "detops"}
    return found


def _walk(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those for type checkers alone: there the package names the parts that it loads when asked."""
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from _walk(node)


def _part_of(name: str) -> str:
    """The part that a name of the top package is; what is none comes from its ``__init__``."""
    return name if (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").exists() else "__init__"


def layers() -> list[list[str]]:
    """The parts from the lowest layer up: each imports of the layers below alone. Raises ValueError for a cycle."""
    graph, found = imports(), list[list[str]]()
    placed: set[str] = set()
    while len(placed) < len(graph):
        layer = [part for part, others in graph.items() if part not in placed and others <= placed]
        if not layer:
            raise ValueError(f"expected no parts that import each other, got {', '.join(sorted(set(graph) - placed))}")
        found.append(layer)
        placed.update(layer)
    return found


def table() -> str:
    """The layers from the top down, and what each part imports."""
    lines = ["| layer | part | imports |", "| --- | --- | --- |"]
    for height, layer in reversed([*enumerate(layers())]):
        for part in layer:
            others = ", ".join(f"`{_title(other)}`" for other in sorted(imports()[part]))
            lines.append(f"| {height} | `{_title(part)}` | {others} |")
    return "".join(f"{line}\n" for line in lines)


def _title(part: str) -> str:
    return {"__init__": "detops", "_cuda": "cuda/kernels"}.get(part, part)
