"""What the docs build would find after minutes: a page that nothing leads to, a name or a picture that is missing."""

import re
from pathlib import Path

import detops
import detops.graph
import detops.numba.scalar
import detops.onnx
import detops.testing
from docs import make_site

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MODULES = (detops, detops.graph, detops.numba.scalar, detops.onnx, detops.testing)
PUBLIC = {f"{module.__name__}.{name}" for module in MODULES for name in module.__all__ if not name.startswith("__")}
# But for what a build of the site left there.
FILES = [path for path in DOCS.rglob("*.md") if not path.relative_to(DOCS).parts[0].startswith("_")]
PAGES = {path.relative_to(DOCS).with_suffix("").as_posix() for path in FILES}


def in_reference() -> list[str]:
    """The names in docs/reference.rst."""
    found, module = list[str](), ""
    for line in (DOCS / "reference.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.partition(":: ")[2]
        elif name := re.fullmatch(r"(?:   |\.\. py:data:: )(\w+)", line):
            found.append(f"{module}.{name[1]}")
    return found


def test_each_public_name_is_in_the_reference_once() -> None:
    assert sorted(in_reference()) == sorted(PUBLIC)


def test_each_page_is_in_the_navigation_once() -> None:
    listed = [page for pages in make_site.SECTIONS.values() for page in pages] + make_site.DECISIONS
    made = {f"_made/{name}" for name in (*make_site.OUTSIDE, "operators", "decisions")}
    assert sorted(listed) == sorted({*PAGES, *made, "reference"} - {"index"})


def test_each_operator_page_has_its_picture() -> None:
    drawn = re.findall(r"^def (\w+)\(\) -> Figure:$", (DOCS / "make_pictures.py").read_text("utf-8"), re.MULTILINE)
    assert sorted(drawn) == sorted(["speed", *(path.stem for path in DOCS.glob("operators/*.md"))])
    page = make_site.of_site("operators/nms", (DOCS / "operators" / "nms.md").read_text("utf-8"), "[{}]".format)
    assert page.count("\n[nms]\n") == 1


def test_links_lead_somewhere() -> None:
    found = []
    for path in (*FILES, *make_site.OUTSIDE.values(), ROOT / "cuda" / "README.md"):
        targets = make_site.LINK.findall(path.read_text(encoding="utf-8"))
        found += [f"{path.name}: {target}" for target in targets if not (path.parent / target).exists()]
    assert found == []


def test_links_on_the_site() -> None:
    text = "[a](docs/numba.md#x), [b](docs/decisions), [c](README.md), [d](https://e.org), [f](#g), out[i](y, x)"
    linked = make_site.with_links(text, ROOT / "CHANGELOG.md", make_site.MADE)
    assert linked == "[a](../numba.md#x), [b](decisions.md), [c](readme.md), [d](https://e.org), [f](#g), out[i](y, x)"
