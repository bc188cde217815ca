"""Say what an operator still lacks: ``python -m tests.support.missing NAME``.

It reads sources, so that it also works before anything is compiled. The tests of completeness run it on every operator.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from detops._specification import KERNELS, OPERATORS, REQUIRED, Kernel
from docs import make_tables
from tests.cases import all_cases
from tests.oracle import oracle
from tests.support import calls

ROOT = Path(__file__).parents[2]
# The type of a parameter in Cython's text, which its name follows.
TYPED = re.compile(r"^.*[ *](?=\w+$)")


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


def written(function: object) -> list[inspect.Parameter]:
    """The parameters of a function, without their annotations."""
    found = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return [parameter.replace(annotation=inspect.Parameter.empty) for parameter in found]


def missing(operator: str) -> list[str]:
    """What an operator lacks, a line each, which begins with the place where it belongs."""
    if operator not in OPERATORS:
        return [f"src/detops/_specification.py: no operator {operator} in OPERATORS"]
    found = [*_functions(operator), *_tests(operator), *_pages(operator)]
    for name in OPERATORS[operator].kernels:
        kernel = KERNELS.get(name)
        found += _kernels(name, kernel) if kernel else [f"src/detops/_specification.py: no kernel {name} in KERNELS"]
    return found


def _signature(got: list[inspect.Parameter], wanted: list[inspect.Parameter]) -> str:
    return "" if got == wanted else f"has {', '.join(map(str, got))}; the specification {', '.join(map(str, wanted))}"


def _functions(operator: str) -> Iterator[str]:
    import detops
    import detops.numba

    wanted = parameters(operator)
    if operator not in detops.__all__:
        yield f"src/detops/operators/{operator}.py: no public function, or no name of it in detops/__init__.py"
    else:
        got = written(getattr(detops, operator))
        if [parameter.name for parameter in got[-2:]] != ["out", "backend"]:
            yield f"src/detops/operators/{operator}.py: the last parameters are not out and backend"
        elif wrong := _signature(got[:-2], wanted):
            yield f"src/detops/operators/{operator}.py: {wrong}"
    if operator not in detops.numba.__all__:
        yield f"src/detops/numba/{operator}.py: no form for compiled code, or no name of it in its __init__.py"
    elif wrong := _signature(written(getattr(detops.numba, operator)), wanted):
        yield f"src/detops/numba/{operator}.py: {wrong}"


def _kernels(name: str, kernel: Kernel) -> Iterator[str]:
    for backend, template in make_tables.SOURCES.items():
        path = template.format(kernel.module)
        text = (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).exists() else ""
        got = _in_cython(text, name) if backend == "cython" else _in_python(text, name)
        if got is None:
            yield f"{path}: no kernel {name}"
        elif got != kernel.parameters:
            yield f"{path}: {name} has {', '.join(got)}; the specification {', '.join(kernel.parameters)}"


def _in_cython(text: str, name: str) -> tuple[str, ...] | None:
    """The parameters of a kernel in Cython's text; None where there is no such kernel."""
    found = re.search(rf"^def {name}\(([^)]*)\)", text, re.MULTILINE)
    return tuple(TYPED.sub("", " ".join(each.split())) for each in found[1].split(",")) if found else None


def _in_python(text: str, name: str) -> tuple[str, ...] | None:
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return tuple(argument.arg for argument in node.args.args)
    return None


def _tests(operator: str) -> Iterator[str]:
    import detops.testing

    try:
        oracle(operator)
    except LookupError:
        yield f"tests/oracle/{operator}.py: no oracle"
    cases = [case for case in all_cases() if case.operator == operator]
    if len(cases) < 5:
        yield f"tests/cases/{operator}.py: {len(cases)} cases, fewer than 5"
    elif not any(0 in np.shape(array) for case in cases for array in case.arrays.values()):
        yield f"tests/cases/{operator}.py: no case without elements"
    if len({case.name for case in cases}) != len(cases):
        yield f"tests/cases/{operator}.py: two cases have one name"
    if operator not in calls.MAKERS:
        yield f"tests/cases/{operator}.py: no ordinary call in ORDINARY"
    named = re.compile(rf"\bdetops\.{operator}\b")
    if not any(named.search(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").glob("test_*.py")):
        yield f"tests/test_{operator}.py: no tests of what is special"
    if operator not in detops.testing.STRATEGIES:
        yield "src/detops/testing/families.py: no strategy in STRATEGIES"


def _pages(operator: str) -> Iterator[str]:
    try:
        make_tables.page_of(operator)
    except LookupError:
        yield f"docs/operators/{operator}.md: no page names it"
    if operator not in _measured():
        yield f"asv_bench/benchmarks/{operator}.py: no benchmark"
    if f"`{operator}`" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        yield "CHANGELOG.md: no line"
    if f"[`{operator}`]" not in (ROOT / "README.md").read_text(encoding="utf-8"):
        yield "README.md: not in the table; run python docs/make_tables.py"


def _measured() -> set[str]:
    from asv_bench import benchmarks
    from asv_bench.benchmarks.common import Benchmark

    return {
        value.operator
        for module in pkgutil.iter_modules(benchmarks.__path__)
        for value in vars(importlib.import_module(f"{benchmarks.__name__}.{module.name}")).values()
        if isinstance(value, type) and issubclass(value, Benchmark) and value is not Benchmark
    }


def main() -> int:
    """Print what the operators named on the command line lack."""
    names = sys.argv[1:]
    if not names:
        print(__doc__.partition("\n")[0], file=sys.stderr)
        return 2
    lines = [line for name in names for line in missing(name)]
    print("\n".join(lines) or "nothing is missing")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
