"""How a function over Numba's types becomes an operator that compiled code and plain Python may call."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from numba.core.errors import ForceLiteralArg, TypingError
from numba.extending import overload

from detops._numba.parallel import OPTIONS
from detops.operators import _checks


class Unknown(Exception):
    """The value of a text, or of a flag that changes types, has to be known when code that holds it is compiled."""


def operator(choose: Callable[..., Callable[..., Any]], constants: Sequence[str] = ()) -> Callable[..., Any]:
    """Make an operator of a function that is called while code is compiled, with the types of the arguments.

    The function has the operator's signature. It gets Numba's types (and the defaults as they are), refuses with
    TypingError what does not fit, and returns the code to compile: a function of the same parameters, all without
    defaults.

    Name the arguments whose values it has to know, unless that is a single text.
    """
    signature = inspect.signature(choose)
    names = list(signature.parameters)

    def implementation(kinds: Sequence[Any]) -> Callable[..., Any]:
        found = choose(**dict(zip(names, kinds, strict=True)))
        # Numba knows no parameters that are given by name alone: bind() refuses calls that give them by position.
        found.__defaults__ = tuple(
            parameter.default for parameter in signature.parameters.values() if parameter.default is not parameter.empty
        )
        return found

    def bind(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    @functools.cache
    def compiled(kinds: tuple[Any, ...]) -> Callable[..., Any]:
        return numba.njit(**OPTIONS)(implementation(kinds))

    @functools.wraps(choose)
    def call(*args: Any, **kwargs: Any) -> Any:
        values = bind(args, kwargs)
        kinds = (_kind_of_value(name, value, name in constants) for name, value in zip(names, values, strict=True))
        return compiled(tuple(kinds))(*values)

    def in_compiled_code(*args: Any, **kwargs: Any) -> Callable[..., Any]:
        try:
            kinds = bind(args, kwargs)
        except TypeError as error:
            raise TypingError(f"{choose.__name__}: {error}") from None
        try:
            return implementation(kinds)
        except Unknown as error:
            wanted = {names.index(str(error))}
            raise ForceLiteralArg(wanted, lambda args, kwargs: bind(args, dict(kwargs))) from None

    # With types alone, which it tries first unless told otherwise, Numba would ask for a text that is written in the
    # user's function as well, and give up, as that is no argument of it.
    overload(call, strict=False, jit_options=OPTIONS, prefer_literal=bool(constants))(in_compiled_code)
    return call


def _kind_of_value(name: str, value: Any, constant: bool) -> Any:
    if isinstance(value, str):
        return numba.types.literal(value)
    if constant and isinstance(value, bool | int | np.bool_ | np.integer):
        return numba.types.literal(bool(value) if isinstance(value, bool | np.bool_) else int(value))
    try:
        return numba.typeof(value)
    except (TypingError, ValueError):
        got = repr(value)
        if isinstance(value, np.ndarray | np.generic):
            got = f"{type(value).__name__} of dtype {value.dtype}{_checks.conversion(value.dtype)}"
        raise TypingError(f"{name}: expected a type that Numba knows, in native byte order, got {got}") from None
