"""Memory of results: what a large one has left is used again, and nobody else sees it meanwhile."""

import gc
import os
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import detops
from detops._cython import memory
from detops.runtime import _memory
from tests.support.processes import run

# Larger than what the C library keeps by itself.
LARGE = (3, 1 << 20)


@pytest.fixture(autouse=True)
def _keep_nothing_afterwards() -> Iterator[None]:
    # Nothing that other tests have left is to be freed in the middle of one of these.
    gc.collect()
    memory.set_most_bytes(0)
    memory.set_most_bytes(_memory.keep_mib * _memory.MIB)
    yield
    memory.set_most_bytes(0)
    memory.set_most_bytes(_memory.keep_mib * _memory.MIB)


needs_keeping = pytest.mark.skipif(os.name == "nt", reason="Windows marks no mapped pages as free: results are NumPy's")


def new(shape: tuple[int, ...] = LARGE, dtype: Any = np.float32) -> np.ndarray:
    return memory.empty(shape, np.dtype(dtype))


@needs_keeping
def test_memory_is_used_again() -> None:
    first = new()
    address = first.ctypes.data
    assert memory.get_kept_bytes() == 0
    del first
    assert memory.get_kept_bytes() >= 3 << 22
    assert new().ctypes.data == address
    # A result that is a little smaller fits, one that is much smaller would waste the rest.
    again = new((3, (1 << 20) - 5000))
    assert again.ctypes.data == address
    del again
    assert new((1, 1 << 20)).ctypes.data != address


@needs_keeping
def test_a_view_holds_the_memory() -> None:
    view = new()[1:, ::7]
    view[...] = 5
    gc.collect()
    assert memory.get_kept_bytes() == 0
    other = new()
    other[...] = 7
    assert (view == 5).all()


@needs_keeping
def test_no_more_is_kept_than_allowed() -> None:
    memory.set_most_bytes(30 << 20)
    held = [new() for _ in range(5)]
    held.clear()
    assert 0 < memory.get_kept_bytes() <= 30 << 20
    memory.set_most_bytes(1 << 20)
    assert memory.get_kept_bytes() == 0
    held = [new() for _ in range(5)]
    held.clear()
    assert memory.get_kept_bytes() == 0


@needs_keeping
def test_many_pieces_of_many_sizes() -> None:
    rng = np.random.default_rng(0)
    held: list[tuple[np.ndarray, int]] = []
    for step in range(400):
        array = new((int(rng.integers(1 << 18, 1 << 22)),))
        array[:: 1 << 12] = step
        held.append((array, step))
        if len(held) > 12:
            gone, written = held.pop(int(rng.integers(len(held))))
            assert (gone[:: 1 << 12] == written).all()
    assert all((array[:: 1 << 12] == written).all() for array, written in held)


def test_threads_share_it() -> None:
    wrong: list[int] = []
    written = threading.Barrier(8)

    def work(number: int) -> None:
        for _ in range(50):
            array = new()
            array[:, ::4096] = number
            written.wait(60)  # now each of them holds an array
            if not (array[:, ::4096] == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_results_are_ordinary_arrays() -> None:
    x = np.random.default_rng(0).normal(size=LARGE).astype(np.float32)
    values, indices = detops.cummax(x, 1)
    assert (values.dtype, indices.dtype) == (np.float32, np.int64)
    for result in (values, indices):
        flags = result.flags
        assert all((flags.c_contiguous, flags.writeable, flags.aligned))
    copy = values.copy()
    values += 1
    assert np.array_equal(values, copy + 1)
    assert not np.shares_memory(values, indices)


def test_a_size_that_no_machine_has() -> None:
    with pytest.raises((MemoryError, ValueError)):
        new((1 << 40, 1 << 20))
    with pytest.raises(MemoryError):
        new((1 << 45,))


@needs_keeping
def test_environment_sets_what_is_kept() -> None:
    code = """
import numpy as np, detops
from detops._cython import memory
x = np.zeros((4, 1 << 20), np.float32)
detops.cummax(x)
print(memory.get_kept_bytes() > 0)
"""
    assert run(code, DETOPS_KEEP_MIB="0").stdout == "False\n"
    assert run(code).stdout == "True\n"
    last = run("import detops", DETOPS_KEEP_MIB="much").stderr.splitlines()[-1]
    assert last == "ValueError: DETOPS_KEEP_MIB: expected a whole number from 0 to 1048576, got 'much'"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads what a process holds where Linux tells it")
def test_where_memory_runs_out() -> None:
    code = """
import resource
import numpy as np, detops
from detops._cython import memory
FLOAT, MIB = np.dtype(np.float32), 1 << 20
detops.set_num_threads(1)
x, offset, weight = (np.ones(shape, FLOAT) for shape in ((1, 64, 512, 512), (1, 2, 512, 512), (1, 64, 1, 1)))
offset[...] = 0
detops.deform_conv2d(x[:, :, :8, :8], offset[:, :, :8, :8], weight)

def limit(more):
    held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + more, resource.RLIM_INFINITY))

# Kept memory makes room for what does not fit into it.
held = memory.empty((40 * MIB // 4,), FLOAT)
del held
print(memory.get_kept_bytes() // MIB)
limit(8 * MIB)
held = memory.empty((44 * MIB // 4,), FLOAT)
print(memory.get_kept_bytes())
# Scratch space for which there is no room is an error, of which nothing stays.
try:
    detops.deform_conv2d(x, offset, weight)
except MemoryError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(memory.get_kept_bytes() < 8 * MIB, (detops.deform_conv2d(x, offset, weight) == 64).all())
"""
    done = run(code, OPENBLAS_NUM_THREADS="1")
    assert done.stdout.splitlines() == [
        "40",
        "0",
        "not enough memory for the scratch space of a kernel",
        "True True",
    ], done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads what a process holds where Linux tells it")
@pytest.mark.parametrize(
    "what",
    [
        "detops.nms(boxes, scores, 0.5)",
        "best_of_all(boxes, scores, 'numba')",
        "detops.batched_nms(boxes, scores, labels, 0.5)",
        "detops.scatter_nd(line, indices, updates)",
        "detops.cummax(columns, 0)",
        "detops.cummax(line[::-1])",
        "detops.cummax(list_of_rows)",
    ],
)
def test_what_is_kept_makes_room_for_every_request(what: str) -> None:
    """Scratch space of the C library, casts and copies of NumPy: each fails without the memory that is kept."""
    code = f"""
import resource
import numpy as np, detops
from detops._cython import memory
MIB = 1 << 20
detops.set_num_threads(1)
boxes = np.zeros((1 << 20, 4), np.float32)
scores, labels = np.zeros(len(boxes), np.float32), np.zeros(len(boxes), np.int32)
line, columns = np.zeros(8 * MIB, np.float32), np.zeros((1 << 15, 256), np.float32)
indices, updates = np.zeros((6 * MIB, 1), np.int32), np.zeros(6 * MIB, np.float32)
class Rows:
    def __array__(self, dtype=None, copy=None):
        return np.ones((8, MIB), np.float32)
list_of_rows = Rows()
def best_of_all(boxes, scores, backend):
    options = dict(max_output_boxes_per_class=1, score_threshold=-1.0)
    return detops.non_max_suppression(boxes[None], scores[None, None], **options, backend=backend)
detops.nms(boxes[:9], scores[:9], 0.5), detops.batched_nms(boxes[:9], scores[:9], labels[:9], 0.5)
detops.scatter_nd(line[:9], indices[:9], updates[:9]), detops.cummax(columns[:9], 0)
if "numba" in {what!r}:
    best_of_all(boxes[:9], scores[:9], "numba")
memory.set_most_bytes(400 * MIB)
pieces = [memory.empty((50 * MIB // 4,), np.dtype(np.float32)) for _ in range(8)]
del pieces
kept = memory.get_kept_bytes()
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + 4 * MIB, resource.RLIM_INFINITY))
{what}
print(kept // MIB, memory.get_kept_bytes() < kept)
"""
    done = run(code, OPENBLAS_NUM_THREADS="1")
    assert done.stdout == "400 True\n", done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts mappings where Linux lists them")
def test_many_results_need_few_mappings() -> None:
    code = """
import numpy as np
from detops._cython import memory
def mappings():
    return len(open("/proc/self/maps").readlines())
before, held = mappings(), [memory.empty((1 << 20,), np.dtype(np.uint8)) for _ in range(9000)]
print(mappings() - before)
for number, array in enumerate(held): array[:1] = number % 251
print(all(array[0] == number % 251 for number, array in enumerate(held)))
held.clear()
kept = memory.get_kept_bytes()
again = memory.empty((1 << 20,), np.dtype(np.uint8))
print(kept - memory.get_kept_bytes() == again.nbytes)
"""
    done = run(code)
    count, *rest = done.stdout.split()
    assert int(count) < 5000
    assert rest == ["True", "True"], done.stderr


@needs_keeping
def test_tracemalloc_sees_results() -> None:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        held = new()
        assert held.nbytes <= tracemalloc.get_traced_memory()[0] - before < held.nbytes + 10_000
        here = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, __file__)])
        found = here.statistics("lineno")[0]
        assert found.size >= held.nbytes
        del held, found
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 100_000
    finally:
        tracemalloc.stop()


@needs_keeping
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_no_fork_amid_a_change() -> None:
    """A child that begins while a thread changes the list of what is kept would have it half changed."""
    for _ in range(10):
        pieces = [new((1, 1 << 20)) for _ in range(32)]
        for piece in pieces:
            piece[...] = 0
        del pieces, piece
        everything = memory.get_kept_bytes()
        begun = threading.Event()

        def drop_all(begun: threading.Event = begun) -> None:
            begun.set()
            memory.set_most_bytes(0)

        thread = threading.Thread(target=drop_all)
        thread.start()
        begun.wait()
        child = os.fork()
        if child == 0:
            os._exit(0 if memory.get_kept_bytes() in (0, everything) else 1)
        thread.join()
        memory.set_most_bytes(_memory.keep_mib * _memory.MIB)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_its_own() -> None:
    held = new()
    held[...] = 1
    child = os.fork()
    if child == 0:
        held[...] = 2
        other = new()
        other[...] = 3
        os._exit(0 if (held == 2).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (held == 1).all()
