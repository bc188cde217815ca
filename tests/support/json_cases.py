"""Small inputs with the right outputs, from public bug reports: the files in ``tests/data/cases``."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parents[1] / "data" / "cases"


@dataclass(frozen=True)
class Subcase:
    """One call under the operator's ONNX or MMCV name, and what must come out: arrays, or an error."""

    name: str
    operator: str
    attributes: dict[str, Any]
    inputs: dict[str, np.ndarray]
    expected: dict[str, np.ndarray]
    raises: bool
    tolerance: float

    def __str__(self) -> str:
        return self.name


def _array(entry: dict[str, Any]) -> np.ndarray:
    data = [float(value) if isinstance(value, str) else value for value in entry["data"]]
    with np.errstate(over="ignore"):
        return (
            np.array(data, np.float64 if entry["dtype"].startswith("float") else entry["dtype"])
            .astype(entry["dtype"])
            .reshape(entry["shape"])
        )


def subcases(*files: str) -> list[Subcase]:
    """All calls in these files, named without their ``.json``."""
    return [
        Subcase(
            name=f"{file}-{case['name']}",
            operator=case["op"],
            attributes=case["attrs"],
            inputs={name: _array(entry) for name, entry in case["inputs"].items()},
            expected={name: _array(entry) for name, entry in case.get("expected", {}).items()},
            raises="expected_error" in case,
            tolerance=case.get("tol", 0),
        )
        for file in files
        for case in json.loads((FOLDER / f"{file}.json").read_text())["subcases"]
    ]


def settled(case: Subcase, result: np.ndarray) -> np.ndarray:
    """The part of a result that a case settles.

    What grid_sample gives at a NaN, and under reflection at an infinity, was our choice to make.
    """
    grid = case.inputs.get("grid")
    if grid is None or case.attributes["padding_mode"] == "zeros":
        return result
    bordered = case.attributes["padding_mode"] == "border"
    defined = (~np.isnan(grid) if bordered else np.isfinite(grid)).all(-1)[:, None]
    assert defined.any()
    return result[np.broadcast_to(defined, result.shape)]


def decoding(case: Subcase) -> dict[str, Any]:
    """Options of decode_bbox for a case."""
    given = case.attributes
    options: dict[str, Any] = {"means": given.get("means", (0.0,) * 4), "offset": int(given.get("plus1", 0))}
    options["scales"] = [1 / deviation for deviation in given.get("stds", (1, 1, 1, 1))]
    if "decode_clip" in given:
        options["decode_clip"] = float(given["decode_clip"])
    if "lo_clip" in given:
        options["lower_clip"] = -options["decode_clip"]
    return options
