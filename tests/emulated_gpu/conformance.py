"""The conformance cases on the emulated GPU: a program that prints what went wrong as JSON.

Usage: ``python -m tests.emulated_gpu.conformance FOLDER every-dtype|some-dtypes OPERATOR...``
"""

import json
import sys
import traceback
from collections.abc import Callable

import numpy as np

import detops
from detops.testing.arguments import LAYOUTS
from tests.cases import Case, all_cases
from tests.emulated_gpu.machine import Array, Machine
from tests.support.comparison import of_oracle, results, same


def _reversed(array: np.ndarray) -> np.ndarray:
    """Negative strides."""
    backwards = (slice(None, None, -1),) * array.ndim
    return np.asarray(array[backwards]).copy()[(*backwards, ...)]


def _repeated(array: np.ndarray) -> np.ndarray:
    """Stride 0 along axes of length 1, as broadcasting leaves it."""
    copy = array.copy()
    strides = (0 if length == 1 else stride for length, stride in zip(copy.shape, copy.strides, strict=True))
    return np.lib.stride_tricks.as_strided(copy, strides=tuple(strides)) if copy.size else copy


# A GPU's array has no byte order but its own, and is read-only by convention alone.
ON_DEVICE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **{name: LAYOUTS[name] for name in ("contiguous", "transposed", "every second")},
    "reversed": _reversed,
    "repeated": _repeated,
}


def run(case: Case, dtype: str, layouts: list[str]) -> int:
    """Run a case from the host, and in some layouts on the GPU; return how often."""
    arrays = {name: array for name, array in case.cast(dtype).items() if array is not None}
    operator = getattr(detops, case.operator)
    for layout in ("host", *layouts):
        lay = ON_DEVICE.get(layout)
        given = {name: Array(lay(array)) if lay else array for name, array in arrays.items()}
        got = results(operator(**given, **case.options, backend="cuda"))
        if lay:
            assert not any(isinstance(result, np.ndarray) for result in got), "results on the host"
        for result, expected in zip(got, of_oracle(case, dtype), strict=True):
            on_host = result.copy_to_host() if lay else result
            same(on_host, expected, case.exact, f"{layout}: {case}")
    return 1 + len(layouts)


def some(dtypes: tuple[str, ...]) -> list[str]:
    """The dtypes that are computed in float32, and one that is no float."""
    others = [dtype for dtype in dtypes if not dtype.startswith("float")]
    return [dtype for dtype in dtypes if dtype in ("float16", "float32")] + others[:1] or list(dtypes)


def main() -> None:
    """Run the cases of the operators that the command line names."""
    folder, extent, *operators = sys.argv[1:]
    machine = Machine(folder)
    runs, failures = 0, []
    turns = list(ON_DEVICE)
    for case in all_cases():
        dtypes = case.dtypes if extent == "every-dtype" else some(case.dtypes)
        for dtype in dtypes if case.operator in operators else ():
            # A run costs what it emulates: in the short form each has two layouts, and they take turns.
            turns = turns[1:] + turns[:1]
            try:
                runs += run(case, dtype, list(ON_DEVICE) if extent == "every-dtype" else turns[:2])
            except Exception:
                failures.append(f"{case} {dtype}: {traceback.format_exc()[-1500:]}")
    print(json.dumps({"runs": runs, "failures": failures, "damage": machine.damage()}))


if __name__ == "__main__":
    main()
