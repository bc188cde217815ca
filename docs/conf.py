"""The site: `python -m sphinx -W --keep-going docs docs/_build`."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

import detops

sys.path.insert(0, str(Path(__file__).parents[1]))
from docs import make_pictures, make_site

project = "detops"
copyright = "The detops developers"
version = release = detops.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode"]
exclude_patterns = ["_build", "templates"]
templates_path = ["templates"]
nitpicky = True
highlight_language = "text"  # formulas are indented blocks

myst_heading_anchors = 4
autodoc_typehints = "none"  # numpydoc's sections say more than annotations
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "furo"
html_title = f"detops {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]


def setup(app: Sphinx) -> None:
    """Make what the pages of the repository do not have."""
    make_pictures.write(*make_pictures.PICTURES)
    make_site.write_made_pages()
    app.add_config_value("sections", make_site.SECTIONS, "env")  # pages are read anew where these are others
    app.connect("source-read", _of_site)


def _of_site(app: Sphinx, name: str, text: list[str]) -> None:
    text[0] = make_site.of_site(name, text[0], make_pictures.figure)
