"""One body for ``detops.numba``: each form gives what the public function gives, and refuses what it refuses."""

import importlib
import inspect
import itertools
import pkgutil
import re
import types
from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

import detops
import detops._numba
import detops.numba
from detops._numba.nms import suppressed
from detops._numba.parallel import inner
from detops._specification import OPERATORS
from detops.numba._operator import _kind_of_value
from detops.operators._checks import NUMBERS
from detops.testing.arguments import LAYOUTS
from tests.cases import all_cases
from tests.support import calls
from tests.support.profile import NIGHTLY

ELSEWHERE = ("out", "backend")
FLOATS = ("float32", "float64")


def results(value: Any) -> tuple[np.ndarray, ...]:
    """The results of a call, one or many."""
    return value if isinstance(value, tuple) else (value,)


def outcome(function: Any, arguments: dict[str, Any], **more: Any) -> Any:
    """What a call returns, or the error that it ends in."""
    try:
        return function(**arguments, **more)
    except (TypingError, TypeError, ValueError, IndexError) as error:
        return error


def argument_of(error: Exception) -> str:
    """The argument that an error names; what is wrong in one of its items is wrong in it."""
    return re.match(r"(\w*)", str(error)).group()


def narrower(error: TypingError, arguments: dict[str, Any]) -> bool:
    """Whether compiled code refuses what it cannot take: float16, and what is no array of NumPy's."""
    value = arguments.get(argument_of(error))
    if isinstance(value, np.ndarray):
        return value.dtype == np.float16 and "Numba compiles no float16 for the CPU" in str(error)
    return value is not None and f"{argument_of(error)}: expected an array, got " in str(error)


def agree(operator: str, arguments: dict[str, Any], form: Any = None) -> Any:
    """Call the form in compiled code and the public function; return what both said."""
    wanted = outcome(getattr(detops, operator), arguments, backend="numba")
    got = outcome(form or getattr(detops.numba, operator), arguments)
    if isinstance(got, TypingError) and narrower(got, arguments):
        return got
    if isinstance(wanted, Exception):
        assert isinstance(got, (type(wanted), TypingError)), f"{got!r}, expected {wanted!r}"
        assert argument_of(got) == argument_of(wanted), f"{got!r}, expected {wanted!r}"
        assert ": expected " in str(got)
        return wanted
    if isinstance(got, Exception):
        raise got
    assert type(got) is type(wanted)
    for result, expected in zip(results(got), results(wanted), strict=True):
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        assert result.tobytes() == expected.tobytes()
    return wanted


@pytest.mark.parametrize("operator", calls.ALL)
def test_signatures_are_the_same(operator: str) -> None:
    wanted = inspect.signature(getattr(detops, operator)).parameters.values()
    got = inspect.signature(getattr(detops.numba, operator)).parameters.values()
    described = [(p.name, p.kind, p.default) for p in wanted if p.name not in ELSEWHERE]
    assert [(p.name, p.kind, p.default) for p in got] == described


def of_few_types(operator: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """A call with all its defaults, and numbers as floats where they may be: cases share what is compiled."""
    call = inspect.signature(getattr(detops.numba, operator)).bind(**arguments)
    call.apply_defaults()
    for option in OPERATORS[operator].options:
        value = call.arguments[option.name]
        if option.kind == "number" and isinstance(value, int):
            call.arguments[option.name] = float(value)
        elif option.kind == "numbers" and isinstance(value, tuple):
            call.arguments[option.name] = tuple(map(float, value))
    return call.arguments


def kinds(operator: str, arguments: dict[str, Any]) -> set[tuple[str, str]]:
    """What decides about a call's compilation: the type of each argument, or its value where it is a text."""
    return {(f"{operator}: {name}", str(_kind_of_value(name, value, False))) for name, value in arguments.items()}


def _calls() -> Iterator[Any]:
    """Right calls. A set of types costs a compilation: the ordinary run has each type of each argument once."""
    seen: set[tuple[str, str]] = set()
    compiled: list[set[tuple[str, str]]] = []
    for case in all_cases():
        # One dtype; test_mixed_types has the others.
        for dtype in [dtype for dtype in case.dtypes if dtype != "float16"][:1]:
            arguments = of_few_types(case.operator, {**case.cast(dtype), **case.options})
            given = kinds(case.operator, arguments)
            if NIGHTLY or given in compiled or not given <= seen:
                seen |= given
                compiled.append(given)
                yield pytest.param(case.operator, arguments, id=str(case))


@pytest.mark.parametrize(("operator", "arguments"), list(_calls()))
def test_values(operator: str, arguments: dict[str, Any]) -> None:
    assert not isinstance(agree(operator, arguments), Exception)


def in_njit(operator: str, names: list[str], **constants: Any) -> Any:
    """A user's compiled function of the arrays, with everything else written in its text."""
    given = [f"{name}={name}" for name in names] + [f"{name}={value!r}" for name, value in constants.items()]
    text = f"def users({', '.join(names)}):\n    return operator({', '.join(given)})"
    scope = {"operator": getattr(detops.numba, operator)}
    exec(text, scope)
    # What a user asks of his own code changes no result of ours.
    return numba.njit(fastmath=True)(scope["users"])


@pytest.mark.parametrize("operator", calls.ALL)
def test_constants_and_keywords_in_a_users_function(operator: str) -> None:
    case = calls.ordinary(operator)
    users = in_njit(operator, list(case.arrays), **case.options)
    arguments = {**case.cast("float32"), **case.options}
    found = agree(operator, arguments, lambda **given: users(*(given[name] for name in case.arrays)))
    assert not isinstance(found, Exception)


def test_a_count_from_zero_on_is_no_constant() -> None:
    """Numba would compile what is called with it once for the 0 and once for the variable."""
    case = calls.ordinary("nms")
    detops.numba.nms(**case.cast("float32"), **case.options)
    kinds = [tuple(map(numba.types.unliteral, signature)) for signature in suppressed.overloads]
    assert len(kinds) == len(set(kinds)) > 0


def test_texts_are_written_or_handed_over() -> None:
    case = calls.ordinary("grid_sample")
    written = in_njit("grid_sample", ["x", "grid", "padding_mode"], mode="nearest")
    handed = in_njit("grid_sample", ["x", "grid", "padding_mode", "mode"])
    for mode, padding_mode in (("nearest", "border"), ("nearest", "zeros"), ("cubic", "zeros")):
        given = {**case.cast("float32"), "padding_mode": padding_mode}
        if mode == "nearest":
            agree("grid_sample", {**given, "mode": mode}, lambda mode, **rest: written(*rest.values()))
        agree("grid_sample", {**given, "mode": mode}, lambda **rest: handed(*rest.values()))


MIXES = [
    ("float64", "float64", "int64", "transposed"),
    ("float64", "float32", "uint64", "read-only"),
    ("float32", "float64", "int16", "every second"),
]


# Each compiles an operator anew: outside the nightly run one is tried, another one for the next operator.
MIXED = [
    (operator, *mix)
    for i, operator in enumerate(calls.ALL)
    for j, mix in enumerate(MIXES)
    if NIGHTLY or i % len(MIXES) == j
]


@pytest.mark.parametrize(("operator", "first", "others", "integer", "layout"), MIXED)
def test_mixed_types(operator: str, first: str, others: str, integer: str, layout: str) -> None:
    case = calls.ordinary(operator)
    given = {}
    for i, (name, array) in enumerate(case.arrays.items()):
        if array.dtype.kind == "i":
            array = (np.abs(array) if integer.startswith("u") else array).astype(integer)
        else:
            array = array.astype(others if i and operator != "scatter_nd" else first)
        given[name] = LAYOUTS[layout](array)
    assert not isinstance(agree(operator, {**given, **case.options}), Exception)


# Outside the nightly run each type is compiled for one of the operators that take all of them.
TYPED = [
    (operator, str(dtype))
    for i, operator in enumerate(("cummax", "cummin", "scatter_nd"))
    for j, dtype in enumerate(NUMBERS)
    if NIGHTLY or (i + j) % 3 == 0
]


@pytest.mark.parametrize(("operator", "dtype"), TYPED)
def test_every_number(operator: str, dtype: str) -> None:
    case = calls.ordinary(operator)
    given = {name: array if name in case.fixed else (array % 100).astype(dtype) for name, array in case.arrays.items()}
    said = agree(operator, {**given, **case.options, **({"reduction": "max"} if operator == "scatter_nd" else {})})
    assert isinstance(said, TypingError) == (dtype == "float16")


def emptied(arrays: dict[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """Arrays of which some have an empty axis."""
    axes = [(None, *range(array.ndim)) for array in arrays.values()]
    for chosen in itertools.product(*axes):
        yield {
            name: array if axis is None else np.ascontiguousarray(array.take([], axis))
            for (name, array), axis in zip(arrays.items(), chosen, strict=True)
        }


@pytest.mark.parametrize("operator", calls.ALL)
def test_empty_axes(operator: str) -> None:
    case = calls.ordinary(operator)
    said = [agree(operator, {**arrays, **case.options}) for arrays in emptied(case.cast("float32"))]
    assert any(not isinstance(value, Exception) for value in said[1:])


def test_suppression_is_computed_in_the_wider_type() -> None:
    boxes = np.array([[40, 40, 50, 50], [41, 41, 51, 51]], np.float32)
    threshold = np.nextafter(81 / 119, 0)
    for dtype, kept in ((np.float64, [0]), (np.float32, [0, 1])):
        given = {"boxes": boxes, "scores": np.array([0.9, 0.8], dtype), "iou_threshold": threshold}
        assert agree("nms", given).tolist() == kept


THRESHOLDS = (0.25, 0.5, 0)
SEVERAL = {
    "tuple": lambda: THRESHOLDS,
    "float64": lambda: np.array(THRESHOLDS),
    "every second float32": lambda: np.array(THRESHOLDS, np.float32).repeat(2)[::2],
    "int8": lambda: np.array([0, 1, 0], np.int8),
    "list": lambda: numba.typed.List(map(float, THRESHOLDS)),
}


@pytest.mark.parametrize("form", SEVERAL)
@pytest.mark.parametrize("operator", ["batched_nms", "non_max_suppression", "non_max_suppression_padded"])
def test_thresholds_of_labels_and_classes_are_held_in_anything(operator: str, form: str) -> None:
    case = calls.ordinary(operator)
    given = {**case.cast("float32"), **case.options, "score_threshold": SEVERAL[form]()}
    wanted = getattr(detops, operator)(**given | {"score_threshold": tuple(given["score_threshold"])})
    assert len(wanted) > 0
    np.testing.assert_array_equal(getattr(detops.numba, operator)(**given), wanted)


def test_thresholds_of_classes_written_in_a_users_function() -> None:
    case = calls.ordinary("non_max_suppression")
    given = case.cast("float32")
    options = {**case.options, "score_threshold": list(map(float, THRESHOLDS))}
    users = in_njit("non_max_suppression", list(given), **options)
    wanted = detops.non_max_suppression(**given, **options)
    np.testing.assert_array_equal(users(*given.values()), wanted)
    with pytest.raises(ValueError, match=r"^score_threshold: expected a number for each class"):
        users(given["boxes"], given["scores"][:, :2])


@pytest.mark.parametrize("dtype", ["float16", "bool", "complex64"])
def test_thresholds_of_classes_that_are_no_numbers_here(dtype: str) -> None:
    case = calls.ordinary("non_max_suppression")
    given = {**case.cast("float32"), **case.options, "score_threshold": np.zeros(3, dtype)}
    with pytest.raises(TypingError, match=rf"score_threshold: expected .*real number.*, got {dtype}"):
        detops.numba.non_max_suppression(**given)


# Arguments that one call after the other puts in place of right ones.
WRONG_NUMBERS = [None, -1, 0, 2, 2.5, -0.5, np.nan, np.inf, True, "other", (), (1, 2), (1, -1), (0, 0, 1, 1), (1.5, 2)]
WRONG_TYPES = ["int64", "uint8", "bool", "complex128", "float16"]


def spoiled_array(array: np.ndarray) -> Iterator[np.ndarray]:
    """Arrays of other types and shapes."""
    for dtype in WRONG_TYPES:
        yield array.astype(dtype)
    yield array[np.newaxis]
    yield array[(0,) * array.ndim]
    for axis in range(array.ndim):
        yield np.ascontiguousarray(array.take(range(array.shape[axis] - 1), axis))
        yield np.ascontiguousarray(array.repeat(2, axis))
        yield np.ascontiguousarray(array.swapaxes(axis, 0))


def spoiled(operator: str, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Calls in which one argument is another than in a right one."""
    for name, value in arguments.items():
        others = spoiled_array(value) if isinstance(value, np.ndarray) else WRONG_NUMBERS
        for other in others:
            yield {**arguments, name: other}


@pytest.mark.parametrize("operator", calls.ALL)
def test_spoiled_arguments(operator: str) -> None:
    case = calls.ordinary(operator)
    signature = inspect.signature(getattr(detops.numba, operator))
    call = signature.bind(**case.cast("float32"), **case.options)
    call.apply_defaults()
    # Most calls are compilations: the ordinary run makes a third of them, another third for the next operator.
    first, step = (0, 1) if NIGHTLY else (calls.ALL.index(operator) % 3, 3)
    for arguments in itertools.islice(spoiled(operator, call.arguments), first, None, step):
        agree(operator, arguments)


@pytest.mark.parametrize("sides", [2**62, (2**60, 0), (0, 0, 0, 2**60)])
@pytest.mark.parametrize("stride", [1, 2**62])
def test_a_padding_whose_positions_overflow(sides: Any, stride: int) -> None:
    case = calls.ordinary("deform_conv2d")
    given = {**case.cast("float32"), "padding": sides, "stride": stride}
    assert isinstance(agree("deform_conv2d", given), ValueError)


def test_bytes_in_the_other_order() -> None:
    x = np.arange(3.0).astype(np.dtype(float).newbyteorder())
    with pytest.raises(TypingError, match=r"x: expected .*native byte order"):
        detops.numba.cummax(x)


def test_a_users_function_of_wrong_types() -> None:
    users = in_njit("nms", ["boxes", "scores"], iou_threshold=0.5)
    with pytest.raises(TypingError, match="scores: expected dtype float32 or float64, got int64"):
        users(np.array([[0, 0, 4, 4]]), np.ones(1, np.int64))


def test_a_variable_that_is_none_or_a_number() -> None:
    @numba.njit
    def users(boxes, scores, limit):
        most = None if limit < 0 else limit
        return detops.numba.nms(boxes, scores, 0.5, max_output_boxes=most, score_threshold=most, pre_nms_top_k=most)

    boxes = np.array([[0, 0, 4, 4], [8, 8, 9, 9], [20, 0, 30, 8]], np.float32)
    scores = np.array([1.5, 3, 2.5], np.float32)
    assert users(boxes, scores, -1).tolist() == [1, 2, 0]
    assert users(boxes, scores, 1).tolist() == [1]


def _names(code: types.CodeType) -> set[str]:
    """The names that code and the functions in it look up."""
    inside = [_names(each) for each in code.co_consts if isinstance(each, types.CodeType)]
    return set(code.co_names).union(*inside)


def python_calls_inner(module: types.ModuleType) -> set[str]:
    """The functions without wrappers whose names the module's plain Python functions look up."""
    bare = {
        name for name, value in vars(module).items() if getattr(value, "targetoptions", {}).get("no_cpython_wrapper")
    }
    plain = [value for value in vars(module).values() if isinstance(value, types.FunctionType)]
    return bare & set().union(*(_names(value.__code__) for value in plain if value.__module__ == module.__name__))


@pytest.mark.parametrize("name", [each.name for each in pkgutil.iter_modules(detops._numba.__path__)])
def test_python_calls_no_function_without_wrappers(name: str) -> None:
    """Such a call crashes."""
    assert python_calls_inner(importlib.import_module(f"detops._numba.{name}")) == set()


def test_a_call_of_a_function_without_wrappers_is_seen() -> None:
    module = types.ModuleType("crashing")
    exec("def inside():\n    pass\n\ndef outside():\n    return [inside() for _ in range(2)]", vars(module))
    module.inside = inner(module.inside)
    assert python_calls_inner(module) == {"inside"}
