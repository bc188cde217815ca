"""What is written by hand agrees with the specification: an option that is added there makes all other places red."""

import inspect
import re
from typing import Any

import numpy as np
import pytest

import detops
import detops.numba
from detops._specification import NUMBERS, OPERATORS, REQUIRED, Array, Option
from detops.onnx._table import OPERATORS as NODES
from tests.support import calls

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
    for dtype in (*NUMBERS, "complex64"):
        given = {**arrays, array.name: np.zeros_like(arrays[array.name], dtype)}
        if dtype in array.dtypes:
            getattr(detops, operator)(**given, **case.options)
        else:
            with pytest.raises(TypeError, match=rf"^{array.name}: expected (an integer |a real )?dtype"):
                getattr(detops, operator)(**given, **case.options)


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
