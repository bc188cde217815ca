"""What the site adds to the Markdown pages: how they are listed, and links and pictures that only it has.

The pages are written to be read where the repository is; docs/conf.py passes each of them through :func:`of_site`.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

from docs import make_tables

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MADE = DOCS / "_made"

# Pages from outside of docs, and what they are called in it.
OUTSIDE = {
    "readme": ROOT / "README.md",
    "contributing": ROOT / "CONTRIBUTING.md",
    "changelog": ROOT / "CHANGELOG.md",
    "digits": ROOT / "examples" / "digits" / "README.md",
}
# The navigation: pages as Sphinx names them, with a title where their own says too little.
SECTIONS: dict[str, dict[str, str | None]] = {
    "First steps": {"_made/readme": "Install and try", "demo": None, "_made/digits": "The demo's model"},
    "How to": {
        "from_torchvision": None,
        "from_mmcv": None,
        "from_yolo": None,
        "arrays": None,
        "numba": None,
        "onnxruntime": None,
        "graph_fusion": None,
        "fuzz_your_backend": None,
    },
    "Operators": {"_made/operators": "All"}
    | {f"operators/{path.stem}": None for path in sorted(DOCS.glob("operators/*.md"))},
    "Reference": {"reference": None, "speed": None, "_made/changelog": None},
    "How it is made": {
        "add_an_operator": None,
        "graph_fusion_proof": None,
        "_made/decisions": None,
        "_made/contributing": None,
    },
}
DECISIONS = [f"decisions/{path.stem}" for path in sorted(DOCS.glob("decisions/*.md"))]

# Where a link leads on the site that leads elsewhere in the repository.
_ELSEWHERE = {
    **{path: MADE / f"{name}.md" for name, path in OUTSIDE.items()},
    DOCS / "operators": MADE / "operators.md",
    DOCS / "decisions": MADE / "decisions.md",
}
# Where a link within the repository leads, without a heading.
LINK = re.compile(r"(?<=\]\()(?!\w+:)([^)#\s]+)(?=[)#])")


def write_made_pages() -> None:
    """Write the pages that are none in docs to docs/_made."""
    pages = {name: with_links(path.read_text(encoding="utf-8"), path, MADE) for name, path in OUTSIDE.items()}
    pages["decisions"] = "# Decisions\n\n" + toctree({f"/{page}": None for page in DECISIONS}, "maxdepth: 1")
    tables = f"{make_tables.operators()}\nFunctions that NumPy computes:\n\n{make_tables.plain_functions()}"
    pages["operators"] = with_links(f"# Operators\n\n{tables}", OUTSIDE["readme"], MADE)
    MADE.mkdir(exist_ok=True)
    for name, text in pages.items():
        page = MADE / f"{name}.md"
        if not page.exists() or page.read_text(encoding="utf-8") != text:  # else Sphinx would build all anew
            page.write_text(text, encoding="utf-8")


def of_site(name: str, text: str, figure: Callable[[str], str]) -> str:
    """Return a page of docs as the site has it; ``figure`` makes the picture of a page in MyST's notation."""
    path = DOCS / f"{name}.md"
    if not path.exists() or MADE in path.parents:
        return text
    text = with_links(text, path, path.parent)
    if name == "index":
        text += "".join(
            "\n" + toctree({f"/{page}": title for page, title in pages.items()}, f"caption: {caption}", "hidden:")
            for caption, pages in SECTIONS.items()
        )
    if name == "speed":
        text = text.replace("\n| ", f"\n{figure(name)}\n| ", 1)
    elif path.parent.name == "operators":
        text = text.replace("<!-- end of signatures -->\n", f"\n{figure(path.stem)}", 1)
    return text


def with_links(text: str, path: Path, folder: Path) -> str:
    """Return the text of ``path`` with its links as a page in ``folder`` needs them."""

    def linked(match: re.Match[str]) -> str:
        target = (path.parent / match[1]).resolve()
        return os.path.relpath(_ELSEWHERE.get(target, target), folder)

    return LINK.sub(linked, text)


def toctree(pages: dict[str, str | None], *options: str) -> str:
    """A list of pages in MyST's notation."""
    entries = [f"{title} <{page}>" if title else page for page, title in pages.items()]
    return "\n".join(["```{toctree}", *(f":{option}" for option in options), *entries, "```", ""])
