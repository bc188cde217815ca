"""Threads: results depend on no number of them, and any number of Python's may call at once."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import detops
from detops.runtime import _threads
from tests.support import calls
from tests.support.processes import run

CPU = ("cython", "numba")
PYTHON_THREADS = 8


@pytest.fixture(autouse=True)
def _keep_the_number_of_threads() -> Iterator[None]:
    before = detops.get_num_threads()
    yield
    detops.set_num_threads(before)


@pytest.mark.parametrize("backend", CPU)
@pytest.mark.parametrize("operator", calls.ALL)
def test_eight_python_threads_at_once(operator: str, backend: str) -> None:
    case = calls.ordinary(operator, calls.LARGE)
    detops.set_num_threads(1)
    wanted = calls.as_bytes(calls.call(case, backend=backend))
    detops.set_num_threads(3)
    start = threading.Barrier(PYTHON_THREADS)
    wrong: list[object] = []

    def work() -> None:
        try:
            start.wait()
            for _ in range(3):
                if calls.as_bytes(calls.call(case, backend=backend)) != wanted:
                    wrong.append("another result")
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(PYTHON_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("backend", CPU)
@pytest.mark.parametrize("operator", calls.ALL)
def test_results_do_not_depend_on_threads(operator: str, backend: str, dtype: str) -> None:
    case = calls.ordinary(operator, calls.LARGE)
    found = []
    for threads in (1, 2, 5):
        detops.set_num_threads(threads)
        found.append(calls.as_bytes(calls.call(case, dtype, backend=backend)))
    assert found[0] == found[1] == found[2]


def test_set_num_threads() -> None:
    detops.set_num_threads(3)
    assert detops.get_num_threads() == 3
    with pytest.raises(ValueError, match=r"^n: expected at least 1, got 0$"):
        detops.set_num_threads(0)
    with pytest.raises(ValueError, match=r"^n: expected at most 4096, got 4097$"):
        detops.set_num_threads(4097)
    for wrong in (1.5, "2", True, None):
        with pytest.raises(TypeError, match=r"^n: expected an integer, got "):
            detops.set_num_threads(wrong)  # type: ignore[arg-type]
    assert detops.get_num_threads() == 3


def test_environment_sets_the_number() -> None:
    code = "import detops; print(detops.get_num_threads())"
    assert run(code, DETOPS_NUM_THREADS="5").stdout == "5\n"
    assert run(code, DETOPS_NUM_THREADS=" 2 ").stdout == "2\n"
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert run(code, DETOPS_NUM_THREADS="").stdout == f"{usable}\n"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinities")
def test_the_default_follows_the_affinity() -> None:
    code = """
import os, detops
every = os.sched_getaffinity(0)
print(detops.get_num_threads() == len(every))
os.sched_setaffinity(0, {min(every)})
print(detops.get_num_threads())
os.sched_setaffinity(0, every)
detops.set_num_threads(7)
os.sched_setaffinity(0, {min(every)})
print(detops.get_num_threads())
"""
    assert run(code, DETOPS_NUM_THREADS="").stdout.split() == ["True", "1", "7"]


@pytest.mark.parametrize(
    ("group", "files", "wanted"),
    [
        ("0::/a/b", {"a/b/cpu.max": "150000 100000", "a/cpu.max": "max 100000"}, 2),
        ("0::/a/b", {"a/b/cpu.max": "400000 100000", "a/cpu.max": "100000 100000"}, 1),
        ("0::/", {"cpu.max": "1000 100000"}, 1),
        ("0::/elsewhere", {"cpu.max": "300000 100000"}, 3),
        ("0::/a", {"a/cpu.max": "max 100000"}, _threads.MAX_THREADS),
        ("0::/a", {"a/cpu.max": "nonsense"}, _threads.MAX_THREADS),
        ("3:cpuset:/a\n1:cpu,cpuacct:/a", {"cpu/a/cpu.cfs_quota_us": "250000", "cpu/a/cpu.cfs_period_us": "100000"}, 3),
        ("1:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, _threads.MAX_THREADS),
        (None, {}, _threads.MAX_THREADS),
    ],
)
def test_quota_of_a_control_group(group: str | None, files: dict[str, str], wanted: int, tmp_path: Path) -> None:
    for name, text in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    if group is not None:
        (tmp_path / "proc/self").mkdir(parents=True)
        (tmp_path / "proc/self/cgroup").write_text(group + "\n")
    assert _threads._quota(tmp_path) == wanted


@pytest.mark.skipif(not hasattr(signal, "sigwait"), reason="this system cannot wait for signals")
@pytest.mark.parametrize("backend", CPU)
def test_workers_take_no_signals(backend: str) -> None:
    """A program that starts its threads before it blocks a signal, to wait for it, lives on."""
    code = """
import os, signal, sys
import numpy as np, detops
detops.set_num_threads(3)
detops.cummax(np.random.default_rng(0).normal(size=(64, 20000)), 1, backend=sys.argv[1])
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
for number in (signal.SIGTERM, signal.SIGUSR1):
    os.kill(os.getpid(), number)
    print(signal.sigwait({number}).name, flush=True)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
os.kill(os.getpid(), signal.SIGTERM)
"""
    # OpenBLAS has threads of its own, which do take signals.
    done = run(code, backend, OPENBLAS_NUM_THREADS="1")
    assert done.stdout.split() == ["SIGTERM", "SIGUSR1"], done.stderr
    # What is not blocked by the program ends it as ever.
    assert done.returncode == -signal.SIGTERM


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system does not list a process's threads")
@pytest.mark.parametrize("moves", ["0", "1"])
def test_masks_set_from_outside_stay(moves: str) -> None:
    """What taskset -a -p does while a call is running: every thread has the new mask for good."""
    code = """
import os, threading, time
import numpy as np, detops
every = os.sched_getaffinity(0)
detops.set_num_threads(4)
x, stop, wrong = np.random.default_rng(0).normal(size=(64, 20000)), threading.Event(), 0
def mask_all(mask):
    for task in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(task), mask)
def work():
    while not stop.is_set():
        detops.cummax(x, 1)
        time.sleep(0.0003)  # workers go to sleep, and are woken again
caller = threading.Thread(target=work)
caller.start()
for turn in range(200):
    narrow = {sorted(every)[turn % len(every)]}
    mask_all(narrow)
    time.sleep(0.002)
    # A worker that was being woken just then settles when it runs, which a busy machine puts off.
    limit = time.monotonic() + 2
    while any(os.sched_getaffinity(int(task)) != narrow for task in os.listdir("/proc/self/task")):
        if time.monotonic() > limit:
            wrong += 1
            break
        time.sleep(0.001)
    mask_all(every)
    time.sleep(0.001)
stop.set()
caller.join()
print(len(os.listdir("/proc/self/task")) > 2, wrong)
"""
    done = run(code, DETOPS_MOVE_THREADS=moves, OPENBLAS_NUM_THREADS="1")
    assert done.stdout.split() == ["True", "0"], done.stderr


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "²", "4097"])
def test_environment_with_no_number(text: str) -> None:
    last = run("import detops", DETOPS_NUM_THREADS=text).stderr.splitlines()[-1]
    assert last == f"ValueError: DETOPS_NUM_THREADS: expected a whole number from 1 to 4096, got {text!r}"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("backend", CPU)
def test_a_forked_child_can_go_on(backend: str) -> None:
    code = """
import os, sys, warnings
import numpy as np, detops
warnings.simplefilter("ignore")
detops.set_num_threads(4)
x = np.random.default_rng(0).normal(size=(64, 20000))
before = detops.cummax(x, backend=sys.argv[1])
child = os.fork()
if child == 0:
    detops.set_num_threads(3)
    after = detops.cummax(x, backend=sys.argv[1])
    os._exit(0 if (after.indices == before.indices).all() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = run(code, backend)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="this system does not list a process's threads")
def test_no_more_threads_than_asked_for_even_with_many_callers() -> None:
    code = """
import os, threading, time
import numpy as np, detops
detops.set_num_threads(3)
x = np.random.default_rng(0).normal(size=(64, 20000))
before = len(os.listdir("/proc/self/task"))
callers = [threading.Thread(target=lambda: [detops.cummax(x) for _ in range(20)]) for _ in range(8)]
for caller in callers: caller.start()
for caller in callers: caller.join()
time.sleep(0.2)  # a thread that was joined may still be on its way out
print(len(os.listdir("/proc/self/task")) - before, flush=True)
detops.set_num_threads(1)
child = os.fork()
if child == 0:
    detops.cummax(x)
    alone = len(os.listdir("/proc/self/task"))
    detops.set_num_threads(3)
    detops.cummax(x)
    print(alone, len(os.listdir("/proc/self/task")), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
    done = run(code, PYTHONWARNINGS="ignore", OPENBLAS_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    # A child has no thread but its own until it asks for more.
    assert sorted(done.stdout.split()) == ["1", "2", "3"]


@pytest.mark.parametrize("items", [1, 2, 3, 1000])
def test_calls_of_any_size_in_a_row(items: int) -> None:
    detops.set_num_threads(4)
    x = np.random.default_rng(items).normal(size=(items, 4000))
    wanted = np.maximum.accumulate(x, 1)
    for _ in range(30):
        assert np.array_equal(detops.cummax(x, 1).values, wanted)
