"""Kernels, threads and memory under stress: ``python -m tests.nightly.stress [PART ...] [--seconds N] [--seed N]``.

The parts, each of which runs for N seconds:

shapes      random shapes, empty ones too, layouts, dtypes and numbers of threads; results lie between guards
parameters  options that are absurd: a call returns, or raises one line that names the option
recycling   results that come and go in several threads, none of which may be handed out twice
limits      as little memory as makes calls fail: the right result or a MemoryError, and the right result afterwards
forks       children that begin amid calls and changes of what is kept, and call as well

``sanitizers.py`` runs them on modules that the compiler checks.
"""

import argparse
import contextlib
import faulthandler
import gc
import inspect
import os
import resource
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import detops
from detops._cython import memory
from tests.cases import Case
from tests.support import calls

MIB = 1 << 20
DTYPES = ("float16", "float32", "float64")


def few(rng: np.random.Generator, most: int = 6) -> int:
    """A size: often small, now and then 0, rarely much larger."""
    return int(rng.integers(0, most * 8 if rng.random() < 0.02 else most + 1))


def boxes(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Boxes of ordinary size, some of them with corners in the wrong order, and a few that are not finite."""
    found = rng.uniform(-20, 60, (*shape, 4))
    found[rng.random(found.shape) < 0.01] = rng.choice([np.nan, np.inf, -np.inf, 0.0, 1e30])
    return found


def _rois(rng: np.random.Generator) -> tuple[calls.Arrays, dict[str, Any]]:
    images, count = 1 + few(rng, 2), few(rng)
    indices = rng.integers(0, images, (count, 1)).astype(float)
    arrays = {
        "features": rng.normal(size=(images, few(rng), 1 + few(rng, 20), 1 + few(rng, 20))),
        "rois": np.concatenate([indices, boxes(rng, count)], axis=1),
    }
    return arrays, {"output_size": (1 + few(rng), 1 + few(rng)), "spatial_scale": float(rng.uniform(0.1, 2))}


def _roi_align(rng: np.random.Generator) -> tuple[calls.Arrays, dict[str, Any]]:
    arrays, options = _rois(rng)
    # Where the size of a roi decides, the rois that are very large are refused.
    return arrays, options | {"sampling_ratio": int(rng.integers(1, 4))}


def _classes(rng: np.random.Generator) -> tuple[calls.Arrays, dict[str, Any]]:
    images, classes, count = few(rng, 3), few(rng, 4), few(rng, 40)
    arrays = {"boxes": boxes(rng, images, count), "scores": rng.uniform(0, 1, (images, classes, count))}
    return arrays, {
        "max_output_boxes_per_class": few(rng, 9),
        "iou_threshold": float(rng.uniform(0, 1)),
        "score_threshold": float(rng.uniform(0, 1)),
    }


def _anchors(rng: np.random.Generator) -> dict[str, Any]:
    return {"anchor_form": str(rng.choice(["corner", "center"])), "offset": int(rng.integers(0, 2))}


def _decode(rng: np.random.Generator) -> tuple[calls.Arrays, dict[str, Any]]:
    count = few(rng, 300)
    return {"box_predictions": rng.normal(size=(count, 4)), "anchors": boxes(rng, count)}, _anchors(rng)


def _encode(rng: np.random.Generator) -> tuple[calls.Arrays, dict[str, Any]]:
    count = few(rng, 300)
    return {"boxes": boxes(rng, count), "anchors": boxes(rng, count)}, _anchors(rng)


def _box_iou(rng: np.random.Generator) -> tuple[calls.Arrays, dict[str, Any]]:
    aligned, count = bool(rng.integers(0, 2)), few(rng, 40)
    arrays = {"boxes_a": boxes(rng, count), "boxes_b": boxes(rng, count if aligned else few(rng, 40))}
    mode = str(rng.choice(["iou", "iof", "giou", "diou", "ciou"]))
    return arrays, {"mode": mode, "aligned": aligned, "offset": int(rng.integers(0, 2))}


def _cumulative(rng: np.random.Generator) -> tuple[calls.Arrays, dict[str, Any]]:
    shape = [few(rng, 12) for _ in range(int(rng.integers(1, 5)))]
    return {"x": rng.normal(size=shape)}, {"axis": int(rng.integers(-len(shape), len(shape)))}


def _nms(rng: np.random.Generator) -> tuple[calls.Arrays, dict[str, Any]]:
    count = few(rng, 300)
    return {"boxes": boxes(rng, count), "scores": rng.uniform(0, 1, count)}, {"iou_threshold": float(rng.uniform(0, 1))}


def _batched_nms(rng: np.random.Generator) -> tuple[calls.Arrays, dict[str, Any]]:
    arrays, options = _nms(rng)
    return {**arrays, "labels": rng.integers(0, 4, len(arrays["scores"]))}, options


def _scatter_nd(rng: np.random.Generator) -> tuple[calls.Arrays, dict[str, Any]]:
    shape = [1 + few(rng, 8) for _ in range(int(rng.integers(1, 4)))]
    depth, count = int(rng.integers(1, len(shape) + 1)), few(rng, 40)
    arrays = {
        "data": rng.normal(size=shape),
        "indices": np.stack([rng.integers(-length, length, count) for length in shape[:depth]], axis=-1),
        "updates": rng.normal(size=(count, *shape[depth:])),
    }
    return arrays, {"reduction": str(rng.choice(["none", "add", "mul", "min", "max"]))}


def _deform_conv2d(rng: np.random.Generator) -> tuple[calls.Arrays, dict[str, Any]]:
    images, groups = few(rng, 2), 1 + few(rng, 2)
    channels, outputs, kernel = groups * (1 + few(rng, 2)), groups * (1 + few(rng, 2)), rng.integers(1, 4, 2)
    stride, padding, dilation = rng.integers(1, 4, 2), rng.integers(0, 4, 2), rng.integers(1, 3, 2)
    reach = dilation * (kernel - 1) + 1
    size = np.maximum(reach - 2 * padding, 1) + rng.integers(0, 12, 2)
    height, width = (size + 2 * padding - reach) // stride + 1
    arrays = {
        "x": rng.normal(size=(images, channels, *size)),
        "offset": rng.normal(0, 3, (images, 2 * int(kernel.prod()), height, width)),
        "weight": rng.normal(size=(outputs, channels // groups, *kernel)),
    }
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    return arrays, {name: tuple(map(int, value)) for name, value in options.items()} | {"groups": groups}


def _grid_sample(rng: np.random.Generator) -> tuple[calls.Arrays, dict[str, Any]]:
    images, axes = few(rng, 2), int(rng.integers(2, 4))
    sizes = [1 + few(rng, 9) for _ in range(axes)]
    arrays = {
        "x": rng.normal(size=(images, few(rng, 24), *sizes)),
        "grid": rng.uniform(-1.5, 1.5, (images, *(few(rng, 7) for _ in range(axes)), axes)),
    }
    return arrays, {
        "mode": str(rng.choice(["nearest", "linear", "cubic"])),
        "padding_mode": str(rng.choice(["zeros", "border", "reflection"])),
        "align_corners": bool(rng.integers(0, 2)),
        "reflect_first": bool(rng.integers(0, 2)),
    }


def _instance_norm(rng: np.random.Generator) -> tuple[calls.Arrays, dict[str, Any]]:
    channels = few(rng)
    arrays = {"x": rng.normal(size=(few(rng, 3), channels, 1 + few(rng, 30), 1 + few(rng, 30)))}
    return arrays | {"scale": rng.normal(size=channels), "bias": rng.normal(size=channels)}, {}


# Shapes that an ordinary call does not have; operators that are not there are called ordinarily, at any size.
MAKERS: dict[str, Callable[[np.random.Generator], tuple[calls.Arrays, dict[str, Any]]]] = {
    "batched_nms": _batched_nms,
    "box_iou": _box_iou,
    "cummax": _cumulative,
    "cummin": _cumulative,
    "decode_bbox": _decode,
    "deform_conv2d": _deform_conv2d,
    "encode_bbox": _encode,
    "grid_sample": _grid_sample,
    "instance_norm": _instance_norm,
    "nms": _nms,
    "non_max_suppression": _classes,
    "non_max_suppression_padded": _classes,
    "roi_align": _roi_align,
    "roi_pool": _rois,
    "scatter_nd": _scatter_nd,
}


def drawn(rng: np.random.Generator, operator: str) -> Case:
    """A random call."""
    if operator not in MAKERS:
        return calls.MAKERS[operator](rng, few(rng))
    arrays, options = MAKERS[operator](rng)
    whole = tuple(name for name, array in arrays.items() if array is not None and array.dtype.kind == "i")
    return Case(operator, "", arrays, options, fixed=whole)


def laid_out(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """The same elements, in a layout that no kernel reads, or in exactly as much memory as they need."""
    kind = int(rng.integers(0, 5))
    if kind == 0:
        return np.asfortranarray(array)
    if kind == 1:
        return np.flip(np.flip(array).copy())
    if kind == 2:
        return array.astype(array.dtype.newbyteorder(">"))
    if kind == 3:
        unaligned = np.ndarray(array.shape, array.dtype, buffer=np.zeros(array.nbytes + 1, np.uint8)[1:])
        unaligned[...] = array
        return unaligned
    return array.copy()


def guarded(like: np.ndarray) -> tuple[np.ndarray, Callable[[], bool]]:
    """An array for a result, and what tells whether nothing was written beside it."""
    around = np.full(like.nbytes + 128, 0xA5, np.uint8)
    out = np.ndarray(like.shape, like.dtype, buffer=around[64 : 64 + like.nbytes])
    return out, lambda: bool((around[:64] == 0xA5).all() and (around[64 + like.nbytes :] == 0xA5).all())


def one_shape(rng: np.random.Generator) -> None:
    """One random call: on one thread, and otherwise."""
    operator = str(rng.choice(calls.ALL))
    case = drawn(rng, operator)
    dtype = str(rng.choice(DTYPES))
    detops.set_num_threads(1)
    wanted = calls.call(case, dtype)
    detops.set_num_threads(int(rng.integers(1, 9)))
    given = {name: laid_out(rng, array) for name, array in case.cast(dtype).items() if array is not None}
    outs, untouched = zip(*(guarded(result) for result in wanted), strict=True)
    getattr(detops, operator)(**given, **case.options, out=outs if len(outs) > 1 else outs[0])
    assert all(check() for check in untouched), f"{operator}: written beside the result, {case.options}"
    assert calls.as_bytes(outs) == calls.as_bytes(wanted), f"{operator}: another result, {case.options}"


def shapes(rng: np.random.Generator, left: Callable[[], bool]) -> int:
    """Calls of random shapes."""
    count = 0
    while left():
        one_shape(rng)
        count += 1
    return count


# No ordinary sizes that would take minutes: nothing, little, or more than there is.
ABSURD = [-1, 0, 1, 2, 3, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**64), 10**400]
ABSURD += [0.0, -0.0, 0.5, 1e308, -1e308, 5e-324, float("nan"), float("inf"), -float("inf")]
ABSURD += [None, True, "", "bilinear", "no such thing", b"ab", "line\nline", object(), [], {1, 2}, {}, 1 + 2j]
ABSURD += [np.float32(3), np.int8(2), np.array(1), np.ones((3, 3)), np.array([]), np.array(["a"]), lambda: 1]


def one_parameter(rng: np.random.Generator) -> None:
    """One call with one or two absurd options."""
    operator = str(rng.choice(calls.ALL))
    case = calls.ordinary(operator)
    public = getattr(detops, operator)
    options = [name for name in inspect.signature(public).parameters if name not in case.arrays]
    chosen = {}
    for name in rng.choice(options, int(rng.integers(1, 3))):
        value = ABSURD[int(rng.integers(0, len(ABSURD)))]
        if rng.random() < 0.3:
            value = (value, ABSURD[int(rng.integers(0, len(ABSURD)))])
        chosen[str(name)] = value
    detops.set_num_threads(int(rng.integers(1, 4)))
    try:
        public(**case.cast("float32"), **{**case.options, **chosen})
    except MemoryError:
        pass
    except (ValueError, TypeError, IndexError) as error:
        said = str(error)
        # A result may be refused for what an option asks of it, and another option first.
        known = [*inspect.signature(public).parameters, *map(str, case.options)]
        assert "\n" not in said, f"{operator}({chosen!r}): more than a line: {said}"
        assert any(name in said for name in known), f"{operator}({chosen!r}): names no argument: {said}"
    except BaseException as error:
        raise AssertionError(f"{operator}({chosen!r}): {type(error).__name__}: {error}") from error


def parameters(rng: np.random.Generator, left: Callable[[], bool]) -> int:
    """Calls with absurd options, with no more than 2 GiB for what they ask."""
    count = 0
    with room(2048):
        while left():
            one_parameter(rng)
            count += 1
    return count


@contextlib.contextmanager
def room(mib: float) -> Iterator[None]:
    """Limit the process's memory to `mib` MiB more than it has mapped, or less."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + int(mib * MIB), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def large_calls(rng: np.random.Generator) -> Iterator[tuple[Callable[[], Any], list[bytes]]]:
    """Calls whose results, scratch space and casts are of several MiB, and what they return."""
    x = rng.normal(size=(64, 50_000)).astype(np.float32)
    scene, scores = boxes(rng, 200_000), rng.uniform(0, 1, 200_000)
    data, at = np.zeros(500_000), rng.integers(0, 500_000, (400_000, 1)).astype(np.int32)
    maps, grid = rng.normal(size=(1, 8, 100, 100)), rng.uniform(-1, 1, (1, 300, 300, 2))
    made: list[Callable[[], Any]] = [
        lambda: detops.cummax(x, 0),
        lambda: detops.cummax(x[::-1].astype(">f4"), 1),
        lambda: detops.nms(scene, scores, 0.5),
        lambda: detops.scatter_nd(data, at, np.ones(len(at)), reduction="add"),
        lambda: detops.grid_sample(maps, grid),
        lambda: detops.instance_norm(x.reshape(1, 64, 200, 250).astype(np.float16)),
    ]
    for call in made:
        yield call, of(call())


def of(results: Any) -> list[bytes]:
    """The bytes of one or several results."""
    return calls.as_bytes(results if isinstance(results, tuple) else (results,))


def limits(rng: np.random.Generator, left: Callable[[], bool]) -> int:
    """Large calls with little memory, while some is kept."""
    every, count, failed = list(large_calls(rng)), 0, 0
    while left():
        call, wanted = every[int(rng.integers(0, len(every)))]
        detops.set_num_threads(int(rng.integers(1, 4)))
        results = []
        with room(float(rng.uniform(-200, 20))):
            try:
                results.append(call())
            except MemoryError:
                failed += 1
        assert all(of(result) == wanted for result in results), "another result with little memory"
        if count % 10 == 0:
            assert of(call()) == wanted, "another result after memory ran out"
        count += 1
    print(f"limits: memory ran out in {failed} of {count}")
    return count


def churn(seed: int, left: Callable[[], bool], counts: list[int]) -> None:
    """Results that come and go; each must hold what was written to it for as long as it lives."""
    rng, held, count = np.random.default_rng(seed), [], 0
    while left():
        stamp = int(rng.integers(0, 1 << 30))
        size = int(rng.integers(MIB // 8, MIB // 2))
        result = detops.scatter_nd(
            np.full(size, stamp, np.float64), np.zeros((1, 1), np.int64), np.array([float(stamp)])
        )
        held.append((stamp, result[::2] if stamp % 2 else result))
        if len(held) > rng.integers(1, 12):
            stamp, result = held.pop(int(rng.integers(0, len(held))))
            if not (result == stamp).all():
                raise AssertionError("a result was written to while it was in use")
            del result
        count += 1
    counts.append(count)


def recycling(rng: np.random.Generator, left: Callable[[], bool]) -> int:
    """Results that come and go in four threads, while the amount that is kept changes."""
    counts: list[int] = []
    broken = threading.Event()

    def work(seed: int) -> None:
        try:
            churn(seed, lambda: left() and not broken.is_set(), counts)
        except BaseException:
            broken.set()
            raise

    threads = [threading.Thread(target=work, args=(int(seed),)) for seed in rng.integers(0, 1 << 30, 4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        memory.set_most_bytes(int(rng.integers(0, 64)) * MIB)
        time.sleep(0.01)
    memory.set_most_bytes(256 * MIB)
    assert not broken.is_set(), "a result was written to while it was in use"
    return sum(counts)


def forks(rng: np.random.Generator, left: Callable[[], bool]) -> int:
    """Children that begin while other threads call; each calls as well, and must end in time."""
    x = rng.normal(size=(64, 20_000)).astype(np.float32)
    detops.set_num_threads(3)
    wanted, stop, count = of(detops.cummax(x, 1)), threading.Event(), 0

    def busy() -> None:
        while not stop.is_set():
            detops.cummax(x, 1)

    def changing() -> None:
        while not stop.is_set():
            memory.set_most_bytes(0)
            memory.set_most_bytes(64 * MIB)

    threads = [threading.Thread(target=target) for target in (busy, busy, changing)]
    for thread in threads:
        thread.start()
    try:
        while left():
            time.sleep(float(rng.uniform(0, 0.02)))
            child = os.fork()
            if child == 0:
                _live_and_end(x, wanted)
            ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert ended == 0, f"a child ended with {ended} (-{signal.SIGALRM:d}: it hung)"
            count += 1
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return count


def _live_and_end(x: np.ndarray, wanted: list[bytes]) -> None:
    signal.alarm(120)
    first, second = detops.cummax(x, 1), detops.cummax(x, 1)
    apart = not any(np.shares_memory(one, other) for one in first for other in second)
    os._exit(0 if apart and of(first) == wanted == of(second) else 1)


PARTS: dict[str, Callable[[np.random.Generator, Callable[[], bool]], int]] = {
    "shapes": shapes,
    "parameters": parameters,
    "recycling": recycling,
    "limits": limits,
    "forks": forks,
}


def main() -> int:
    """Run the parts for some time each and say what was found."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS), metavar="PART")
    options.add_argument("--seconds", type=float, default=300)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    faulthandler.enable()
    # What inf and NaN do to NumPy's casts, and forks amid threads, are what this is about.
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for name in given.parts:
        end = time.monotonic() + given.seconds
        count = PARTS[name](np.random.default_rng(given.seed), lambda: time.monotonic() < end)  # noqa: B023
        gc.collect()
        print(f"{name}: {count} cases in {given.seconds:g} s, no fault", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
