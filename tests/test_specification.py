"""What is written by hand agrees with the specification: an option that is added there makes all other places red."""

import ast
import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detops
import detops.numba
from detops import _registry
from detops._specification import KERNELS, OPERATORS, REQUIRED, Array, Option
from detops.onnx._table import OPERATORS as NODES
from tests import calls

ROOT = Path(__file__).parents[1]
SOURCES = {
    "cython": "src/detops/_cython/{}.pyx",
    "numba": "src/detops/_numba/{}.py",
    "cuda": "cuda/kernels/{}.py",
}


def parameters(operator: str) -> list[inspect.Parameter]:
    """The parameters of an operator as the specification has them, without `out` and `backend`."""
    found = OPERATORS[operator]
    at = len(found.parameters) - found.by_name
    kinds = [inspect.Parameter.POSITIONAL_OR_KEYWORD] * at + [inspect.Parameter.KEYWORD_ONLY] * found.by_name
    return [
        inspect.Parameter(
            each.name, kind, default=inspect.Parameter.empty if each.default is REQUIRED else each.default
        )
        for each, kind in zip(found.parameters, kinds, strict=True)
    ]


def written(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function, without their annotations."""
    return [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
    ]


@pytest.mark.parametrize("operator", calls.ALL)
def test_public_signature(operator: str) -> None:
    found = written(getattr(detops, operator))
    assert [parameter.name for parameter in found[-2:]] == ["out", "backend"]
    assert found[:-2] == parameters(operator)


@pytest.mark.parametrize("operator", calls.ALL)
def test_signature_in_compiled_code(operator: str) -> None:
    assert written(getattr(detops.numba, operator)) == parameters(operator)


@pytest.mark.parametrize("backend", _registry.BACKENDS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_signature(kernel: str, backend: str) -> None:
    function = _registry.kernel(kernel, backend, np.dtype(np.float32))
    assert tuple(inspect.signature(function).parameters) == KERNELS[kernel].parameters


def test_every_kernel_serves_an_operator() -> None:
    assert {kernel for operator in OPERATORS.values() for kernel in operator.kernels} == set(KERNELS)
    assert list(OPERATORS) == sorted(OPERATORS), "keep the table sorted"
    assert list(KERNELS) == sorted(KERNELS), "keep the table sorted"


OPTIONS = [(operator, option) for operator, found in OPERATORS.items() for option in found.options]
IDS = [f"{operator}-{option.name}" for operator, option in OPTIONS]


def refused(operator: str, name: str, value: Any, error: type[Exception]) -> None:
    """An ordinary call with one value changed raises an error that names the argument."""
    case = calls.ordinary(operator)
    with pytest.raises(error, match=rf"^{name}\b"):
        getattr(detops, operator)(**case.cast("float32"), **{**case.options, name: value})


@pytest.mark.parametrize(("operator", "option"), OPTIONS, ids=IDS)
def test_what_no_option_may_be(operator: str, option: Option) -> None:
    refused(operator, option.name, {}, ValueError if option.kind == "word" else TypeError)
    if option.kind == "word":
        refused(operator, option.name, "other", ValueError)
    if not option.optional:
        refused(operator, option.name, None, ValueError if option.kind == "word" else TypeError)


@pytest.mark.parametrize(("operator", "option"), OPTIONS, ids=IDS)
def test_bounds_of_options(operator: str, option: Option) -> None:
    step = 1 if option.kind.startswith("integer") else 0.01
    wrong = [option.least - step] if option.least is not None else []
    wrong += [option.most + step] if option.most is not None else []
    wrong += [option.above, option.above - step] if option.above is not None else []
    for value in wrong:
        refused(operator, option.name, value, ValueError)
    if option.kind in ("number", "numbers per class"):
        refused(operator, option.name, np.nan, ValueError)


@pytest.mark.parametrize(("operator", "option"), OPTIONS, ids=IDS)
def test_docstring_names_words_and_default(operator: str, option: Option) -> None:
    """The line of a parameter says what it may be."""
    line = re.search(rf"^{option.name}(?:, \w+)* : (.*)$|^\w+, {option.name} : (.*)$", doc(operator), re.MULTILINE)
    assert line, f"{option.name} is no parameter in the docstring"
    text = line[1] or line[2]
    if option.kind == "word":
        named = set(re.findall(r'"(\w+)"', text))
        assert named <= set(option.words)
        assert {option.words[word] for word in named} == set(option.words.values())
    assert ("optional" in text) == (option.default is None), text
    if option.default is not REQUIRED and option.default is not None:
        assert "default" in text, text


@pytest.mark.parametrize(
    ("operator", "array"),
    [(operator, array) for operator, found in OPERATORS.items() for array in found.arrays],
    ids=lambda value: value.name if isinstance(value, Array) else value,
)
def test_dtypes_of_arrays(operator: str, array: Array) -> None:
    case = calls.ordinary(operator)
    arrays = case.cast("float32")
    if arrays.get(array.name) is None or not array.dtypes:
        return
    with pytest.raises(TypeError, match=rf"^{array.name}: expected dtype"):
        getattr(detops, operator)(**{**arrays, array.name: np.zeros_like(arrays[array.name], complex)}, **case.options)


def doc(operator: str) -> str:
    """The docstring of an operator."""
    return str(inspect.getdoc(getattr(detops, operator)))


@pytest.mark.parametrize("operator", calls.ALL)
def test_results(operator: str) -> None:
    case = calls.ordinary(operator)
    arrays = {name: np.asarray(array) for name, array in case.cast("float32").items() if array is not None}
    got = calls.call(case)
    wanted = OPERATORS[operator].results
    assert len(got) == len(wanted)
    for result, array in zip(wanted, got, strict=True):
        like = arrays.get(result.dtype)
        assert array.dtype == (result.dtype if like is None else like.dtype)
        assert array.ndim == (result.rank if isinstance(result.rank, int) else arrays[result.rank].ndim)


def test_arguments_of_nodes_are_arguments_of_functions() -> None:
    for node in NODES:
        names = {each.argument for each in (*node.inputs, *node.attributes)} | set(node.fixed)
        known = {each.name for each in node.function.parameters}
        # What no option is called: the halves of a pair, and what chooses the operator or is checked alone.
        assert names - known <= {"output_height", "output_width", "smallest", "kernel_shape"}


def test_sources_are_where_the_specification_says() -> None:
    for kernel, found in KERNELS.items():
        for backend, path in SOURCES.items():
            text = (ROOT / path.format(found.module)).read_text(encoding="utf-8")
            if backend == "cython":
                assert f"def {kernel}(" in text
            else:
                assert kernel in {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    assert importlib.import_module("detops._specification").KERNELS is KERNELS
