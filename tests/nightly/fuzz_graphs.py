"""Graphs with damaged structure for fusion: ``python tests/nightly/fuzz_graphs.py [--seconds N] [--seed N]``.

The messages of whole models are changed field by field: numbers become odd ones, names those of something else, and
entries of lists are dropped, doubled, moved and taken from elsewhere. `fuse_decode_bbox` answers, or raises what the
command line says in one line (ValueError); anything else, more than five seconds of work, and a process that dies, is a
fault. The models that showed one are kept in the folder that is printed.
"""

import argparse
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from detops.graph import fuse_decode_bbox
from detops.graph.model._tf_schema import messages

DATA = Path(__file__).parents[1] / "data" / "graphs"
ODD = (0, 1, -1, 2, 3, 4, 7, 16, 100, 255, 1 << 16, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63))
SECONDS = 5.0
LARGEST = 100_000  # bytes of a model


def whole_models() -> Iterator[Any]:
    """Models that can be read, as messages."""
    for path in sorted(DATA.rglob("*.onnx")):
        if path.stat().st_size <= LARGEST:
            yield onnx.load(path)
    for path in sorted(DATA.rglob("*.pb")):
        yield messages()["GraphDef"].FromString(path.read_bytes())


def parts(message: Any) -> list[tuple[Any, Any]]:
    """List every field that is set, with the message that holds it."""
    found, pending = [], [message]
    while pending:
        holder = pending.pop()
        for field, value in holder.ListFields():
            found.append((holder, field))
            if field.message_type is None:
                continue
            if field.message_type.GetOptions().map_entry:
                inner = field.message_type.fields_by_name["value"].message_type
                pending += value.values() if inner is not None else []
            else:
                pending += value if _repeated(field, value) else [value]
    return found


def _repeated(field: Any, value: Any) -> bool:
    return hasattr(value, "append") or hasattr(value, "add")


def damage(message: Any, rng: np.random.Generator) -> None:
    """Change one field."""
    listed = parts(message)
    holder, field = listed[rng.integers(len(listed))]
    value = getattr(holder, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        if value:
            del value[list(value)[rng.integers(len(value))]]
    elif _repeated(field, value):
        _damage_list(value, field, listed, rng)
    elif field.message_type is not None or rng.random() < 0.2:
        holder.ClearField(field.name)
    else:
        setattr(holder, field.name, _other(value, listed, rng))


def _damage_list(values: Any, field: Any, listed: Any, rng: np.random.Generator) -> None:
    kind, at = rng.integers(5), int(rng.integers(len(values)))
    if kind == 0:
        del values[at]
    elif kind == 1:
        values.extend([values[at]])
    elif kind == 2:
        items = [values[place] for place in rng.permutation(len(values))]
        copies = (
            items if field.message_type is None else [type(item).FromString(item.SerializeToString()) for item in items]
        )
        del values[:]
        values.extend(copies)
    elif field.message_type is None:
        values[at] = _other(values[at], listed, rng)
    else:
        values[at].CopyFrom(values[int(rng.integers(len(values)))])


def _other(value: Any, listed: Any, rng: np.random.Generator) -> Any:
    """Return another value of the type: an odd number, or one that stands elsewhere in the model."""
    elsewhere = [
        getattr(holder, field.name) for holder, field in (listed[rng.integers(len(listed))] for _ in range(40))
    ]
    same = [other for other in elsewhere if type(other) is type(value)]
    if isinstance(value, (str, bytes)) or (same and rng.random() < 0.3):
        return same[0] if same else value
    if isinstance(value, float):
        return float(rng.choice([0.0, -1.0, 0.5, 1e30, np.inf, -np.inf, np.nan]))
    return type(value)(ODD[rng.integers(len(ODD))])


def outcome_of(model: Any) -> str:
    """Say how fusion of a model ends."""
    begin = time.process_time()
    try:
        findings = fuse_decode_bbox(model)[1]
        outcome = "fused" if any(finding.fused for finding in findings) else "refused"
    except ValueError:
        outcome = "ValueError"
    except Exception as error:
        (frame,) = traceback.extract_tb(error.__traceback__)[-1:]
        return f"fault {type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}: {str(error)[:80]}"
    return outcome if time.process_time() - begin < SECONDS else "fault: too slow"


def main() -> int:
    """Run for some time and say what was found."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=300)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    limit = 6 << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    rng, models, counts = np.random.default_rng(given.seed), list(whole_models()), Counter[str]()
    folder = Path(tempfile.mkdtemp(prefix="fuzz-graphs-"))
    end = time.monotonic() + given.seconds
    while time.monotonic() < end:
        model = type(source := models[rng.integers(len(models))])()
        model.CopyFrom(source)
        for _ in range(rng.integers(1, 4)):
            try:
                damage(model, rng)
            except (ValueError, OverflowError, TypeError):  # the field cannot hold it
                continue
        file = folder / "case"
        file.write_bytes(model.SerializeToString())  # and there it is, if the process dies
        outcome = outcome_of(model)
        counts[outcome] += 1
        if outcome.startswith("fault"):
            file.rename(folder / f"fault{counts.total()}")
    for outcome, count in sorted(counts.items()):
        print(f"{count:8} {outcome}")
    faults = sum(count for outcome, count in counts.items() if outcome.startswith("fault"))
    print(f"{counts.total()} models, {faults} faults" + (f", kept in {folder}" if faults else ""))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
