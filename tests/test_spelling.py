"""One spelling, the American: that of ONNX, torchvision and NumPy, whose names stand next to ours."""

import re
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "cuda", "docs", "tests", "examples", "asv_bench")
KINDS = ("*.py", "*.pyx", "*.pxi", "*.pyi", "*.md", "*.c")
BRITISH = re.compile(
    r"""centre|behaviour|colour|neighbour|favour(?!ite)|honour|labelled|labelling|modell(ed|ing)|travell(ed|ing)
    |cancell(ed|ing)|\bgrey|licence|catalogue|judgement|artefact|whilst|\btowards\b
    |(categor|character|emphas|final|general|initial|local|maxim|memor|minim|normal|optim|organ|parallel|penal|priorit
    |quant|random|real|recogn|regular|serial|special|standard|summar|symbol|synchron|token|util|vector|visual)
    is(e[ds]?|ing|ations?)\b""",
    re.IGNORECASE | re.VERBOSE,
)
# CHANGELOG.md names a function that was once public.
ALLOWED = re.compile(r"\bunnormalise\b")


def texts() -> list[Path]:
    found = chain.from_iterable((ROOT / folder).rglob(kind) for folder in FOLDERS for kind in KINDS)
    return [*ROOT.glob("*.md"), *(path for path in found if path != Path(__file__))]


def british(text: str) -> list[str]:
    return [match[0] for match in BRITISH.finditer(ALLOWED.sub("", text))]


def test_american_spelling() -> None:
    found = {str(path.relative_to(ROOT)): british(path.read_text(encoding="utf-8")) for path in texts()}
    assert len(found) > 300
    assert {path: words for path, words in found.items() if words} == {}


@pytest.mark.parametrize("word", ["Centre", "new_centre", "neighbours", "specialised", "Normalisation", "grey"])
def test_british_spelling_is_found(word: str) -> None:
    assert british(f"a {word} b")


@pytest.mark.parametrize("word", ["center", "raise", "noise", "precise", "otherwise", "realistic"])
def test_other_words_are_not(word: str) -> None:
    assert not british(f"a {word} b")
