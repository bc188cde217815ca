"""What is written by hand agrees with the specification: an option that is added there makes all other places red."""

import inspect
import re
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import ml_dtypes
import numpy as np
import pytest
from numba.core.errors import TypingError

import detops
import detops.numba
from detops._specification import NUMBERS, OPERATORS, REQUIRED, Array, Option
from detops.onnx._table import OPERATORS as NODES
from detops.runtime._registry import Backend
from tests.support import calls
from tests.support.comparison import BACKENDS, dtypes_of_results


class Foreign:
    """A number as libraries of tensors have it: an array of no axes that can be iterated over by its type alone."""

    def __init__(self, number: Any) -> None:
        self.number = number
        self.shape = ()

    def item(self) -> Any:
        return self.number

    def __iter__(self) -> Any:
        raise TypeError("iteration over a tensor of no axes")


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


@pytest.mark.parametrize("operator", OPERATORS)
def test_words_are_types(operator: str) -> None:
    """A type checker refuses a word that the specification does not have."""
    hints = get_type_hints(getattr(detops, operator))
    for option in OPERATORS[operator].options:
        if option.kind == "word":
            assert set(get_args(hints[option.name])) == set(option.words)
    assert hints["backend"] == Backend | None


class Unspeakable:
    """What cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


HOSTILE = {
    **{f"10**{power}": 10**power for power in (18, 20, 400, 5000)},
    **{f"-10**{power}": -(10**power) for power in (18, 20, 400, 5000)},
    **{f"2**{power}": 2**power for power in (31, 32, 62, 63, 64)},
    **{f"{number}": number for number in (1e38, 1e39, 1e300, -1e300, 5e-324, np.inf, -np.inf, np.nan, 1 + 2j)},
    "a fraction": Fraction(10**400, 3),
    "a decimal": Decimal(1),
    "a date": np.datetime64(1, "s"),
    "no axes": np.array(1),
    "no axes, a float": np.array(1.0, np.float16),
    "no axes, a bool": np.array(True),
    "no axes, complex": np.array(1j),
    "no axes, text": np.array("1"),
    "masked": np.ma.masked,
    "of another library": SimpleNamespace(shape=(), item=lambda: 1),
    "one axis": np.array([1.0]),
    "a large array": np.ones((200, 200)),
    "a table": [[1, 2], [3, 4]],
    "a long list": [1] * 1000,
    "sizes that are hostile": (2**63, 10**400),
    "text": "12",
    "bytes": b"ab",
    "lines": "one\ntwo",
    "a set": {1, 2},
    "a mapping": {1: 2},
    "None": None,
    "an object": object(),
    "unspeakable": Unspeakable(),
}


@pytest.mark.filterwarnings("ignore:tid=")  # arithmetic of the simulator
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("operator", calls.ALL)
def test_hostile_values(operator: str, backend: str) -> None:
    """Whatever an option is, the call works, or ends in one short line that names an argument."""
    case = calls.ordinary(operator)
    arguments = "|".join(each.name for each in OPERATORS[operator].parameters)
    for option in OPERATORS[operator].options:
        for what, value in HOSTILE.items():
            given = {**case.options, option.name: value, "backend": backend}
            try:
                getattr(detops, operator)(**case.cast("float32"), **given)
            except (TypeError, ValueError) as error:
                text = str(error)
                assert re.fullmatch(rf"({arguments})\b.*: expected .{{,300}}", text), (option.name, what, text)
            except Exception as error:
                raise AssertionError(f"{option.name}, {what}: {error!r}") from error


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_backends(what: str) -> None:
    if HOSTILE[what] is None:
        return
    for call in (lambda backend: detops.cummax([1], backend=backend), lambda b: detops.use_backend(b).__enter__()):
        with pytest.raises(ValueError, match=r"^backend: expected .{,250}$"):
            call(HOSTILE[what])


@pytest.mark.parametrize("scalar", [np.array, np.float64, np.asanyarray, Foreign])
def test_numbers_of_other_kinds(scalar: Any) -> None:
    """Arrays of no axes and scalars of other libraries are numbers."""
    boxes, scores = np.array([[0.0, 0, 4, 4], [0, 0, 4, 3], [0, 0, 4, 2]]), np.array([0.9, 0.8, 0.7])
    assert detops.nms(boxes, scores, scalar(0.6), score_threshold=scalar(0.1)).tolist() == [0, 2]
    maps, rois = np.arange(16.0).reshape(1, 1, 4, 4), np.array([[0.0, 0, 0, 4, 4]])
    if scalar is not np.float64:
        kept = detops.nms(boxes, scores, 0.6, max_output_boxes=scalar(1), offset=scalar(0))
        assert kept.tolist() == [0]
        wanted = detops.roi_align(maps, rois, 2, aligned=False)
        got = detops.roi_align(maps, rois, scalar(2), aligned=scalar(False), sampling_ratio=scalar(0))
        np.testing.assert_array_equal(got, wanted)
        np.testing.assert_array_equal(detops.roi_align(maps, rois, (scalar(2), 2), aligned=False), wanted)


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


FLOAT_ARRAYS = [
    (operator, array.name)
    for operator, found in OPERATORS.items()
    for array in found.arrays
    if array.name in calls.ordinary(operator).arrays and (not array.dtypes or "float32" in array.dtypes)
]


@pytest.mark.parametrize(("operator", "name"), [each for each in FLOAT_ARRAYS if each != ("scatter_nd", "updates")])
def test_types_of_ml_dtypes(operator: str, name: str) -> None:
    """The error says what to do, in the public function and in compiled code."""
    case = calls.ordinary(operator)
    given = {**case.cast("float32"), **case.options}
    given[name] = given[name].astype(ml_dtypes.bfloat16)
    message = rf"{name}: expected .*, got .*bfloat16: convert it first, as \.astype\(numpy\.float32\) does$"
    for library, error in ((detops, TypeError), (detops.numba, TypingError)):
        with pytest.raises(error, match=message):
            getattr(library, operator)(**given)
    given[name] = given[name].view("V2")  # as torch describes it on a GPU
    with pytest.raises(TypeError, match=rf"{name}: expected .*, got \|V2, which libraries make of bfloat16: convert"):
        getattr(detops, operator)(**given)


def doc(operator: str) -> str:
    """The docstring of an operator."""
    return str(inspect.getdoc(getattr(detops, operator)))


@pytest.mark.parametrize("operator", calls.ALL)
def test_results(operator: str) -> None:
    case = calls.ordinary(operator)
    arrays = {name: np.asarray(array) for name, array in case.cast("float32").items() if array is not None}
    got = calls.call(case)
    wanted = OPERATORS[operator].results
    assert [array.dtype for array in got] == dtypes_of_results(operator, arrays)
    for result, array in zip(wanted, got, strict=True):
        assert array.ndim == (result.rank if isinstance(result.rank, int) else arrays[result.rank].ndim)


def test_arguments_of_nodes_are_arguments_of_functions() -> None:
    for node in NODES:
        names = {each.argument for each in (*node.inputs, *node.attributes)} | set(node.fixed)
        known = {each.name for each in node.function.parameters}
        # What no option is called: the halves of a pair, and what chooses the operator or is checked alone.
        assert names - known <= {"output_height", "output_width", "smallest", "kernel_shape"}
