"""One comparison of detops with its peers, and how it is measured."""

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

# The shortest sample: a quick function is called several times in it.
SAMPLE_SECONDS = 0.01
# A row is measured for this time, in MIN_ROUNDS to MAX_ROUNDS rounds.
ROW_SECONDS = 5.0
MIN_ROUNDS = 7
MAX_ROUNDS = 200
# Threads of a pool go on spinning for a while after a call, OpenBLAS's for more than a tenth of a second; they would
# take time from whoever is measured next.
REST_SECONDS = 0.2
# After a rest caches are cold, threads asleep and clocks slow. Each side runs for so long before its sample.
WARM_SECONDS = 0.01


@dataclass(frozen=True)
class Row:
    """One workload.

    Parameters
    ----------
    name : str
        The operator, then what is special: ``"roi_align 1000 rois, sampling_ratio=2"``.
    ours : callable
        Calls detops, without arguments.
    peers : dict of str to callable
        The same work done by others. One that raises ImportError is skipped.
    target : float, optional
        How many times faster than the peer `against` detops should be.
    against : str, default "onnxruntime"
        The peer of the target.
    """

    name: str
    ours: Callable[[], Any]
    peers: dict[str, Callable[[], Any]]
    target: float | None = None
    against: str = "onnxruntime"

    def __post_init__(self) -> None:
        if self.target is not None and self.against not in self.peers:
            raise ValueError(f"{self.name}: the target is against {self.against!r}, peers are {sorted(self.peers)}")


@dataclass(frozen=True)
class Ratio:
    """How many times as long a peer takes: the median over rounds, and the quartiles."""

    row: str
    peer: str
    median: float
    low: float
    high: float
    target: float | None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        return None if self.target is None else self.median >= self.target


def measure(row: Row, missing: Callable[[str], None], seconds: float = ROW_SECONDS) -> list[Ratio]:
    """Measure detops and each peer in turn, round after round.

    ``missing`` is called with one line about each peer that cannot run here.
    """
    present = {}
    for peer, call in row.peers.items():
        try:
            call()
        except ImportError as error:
            missing(f"{row.name}: {peer} is left out ({error})")
        else:
            present[peer] = call
    if not present:
        return []
    row.ours()
    calls = {"": row.ours, **present}
    counts = {name: _calls_per_sample(call) for name, call in calls.items()}
    ratios: dict[str, list[float]] = {peer: [] for peer in present}
    with _no_collection():
        for _ in _rounds(seconds):
            took = {name: _sample(call, counts[name]) for name, call in calls.items()}
            for peer, found in ratios.items():
                found.append(took[peer] / took[""])
    return [
        Ratio(row.name, peer, *_summary(found), row.target if peer == row.against else None)
        for peer, found in ratios.items()
    ]


def _calls_per_sample(call: Callable[[], Any]) -> int:
    # The first call of a row may start threads: it says nothing about the others.
    took = min(_sample(call, 1) for _ in range(3))
    return max(1, math.ceil(SAMPLE_SECONDS / took))


def _sample(call: Callable[[], Any], count: int) -> float:
    """Seconds for one call."""
    time.sleep(REST_SECONDS)
    end = time.perf_counter() + WARM_SECONDS
    while time.perf_counter() < end:
        call()
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def _rounds(seconds: float) -> Iterator[int]:
    end = time.perf_counter() + seconds
    for i in range(MAX_ROUNDS):
        if i >= MIN_ROUNDS and time.perf_counter() > end:
            return
        yield i


@contextmanager
def _no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _summary(found: list[float]) -> tuple[float, float, float]:
    low, median, high = statistics.quantiles(found, n=4, method="inclusive")
    return median, low, high
