"""Cython text that is made of what Python knows, so that it is written once.

``setup.py`` runs this before anything is compiled: what it imports may import nothing but the standard library.
"""

from pathlib import Path

from detops import _codes
from detops.onnx import _slots

FILES = {"codes.pxi": _codes.as_cython, "slots.pxi": _slots.as_cython}


def write(folder: Path) -> None:
    """Write the files, where they have changed: a newer one would have all that includes it compiled again."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in FILES.items():
        path, text = folder / name, make()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
