"""Loops of Numba's kernels become vectors: with a call or a branch in them they are ten to thirty times as slow."""

import importlib
import re

import numpy as np
import pytest

import detops

BOXES = np.array([[0, 0, 40, 40], [2, 0, 42, 40], [60, 8, 90, 30]], np.float32)

# The loop, a call that compiles it, and what the loop computes with vectors in LLVM's language.
LOOPS = {
    "box_iou.compare_all": (lambda: detops.box_iou(BOXES, BOXES, backend="numba"), r"fdiv <\d+ x float>"),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_numba_makes_vectors_of(loop):
    call, wanted = LOOPS[loop]
    call()
    module, _, name = loop.partition(".")
    compiled = getattr(importlib.import_module(f"detops._numba.{module}"), name).__wrapped__
    codes = [code for types, code in compiled.inspect_llvm().items() if "float32" in str(types)]
    assert codes
    for code in codes:
        assert re.search(wanted, code), "the compiler left it a loop over single numbers"
