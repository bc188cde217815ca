"""Ending a command that is told to, without leaving anything unfinished behind."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

_asked: list[int] = []


@contextmanager
def unwinding() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block as an exception does, so that what is unfinished is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: Any) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)  # the first one is enough, and another must not disturb the removal
        _asked.append(number)
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # One that is ignored (nohup) stays so, and one that the caller handles is the caller's.
    numbers = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in numbers:
            signal.signal(number, leave)
        yield
    finally:
        _asked.clear()
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def check() -> None:
    """Leave now, if the exception came where Python only prints it: in a finalizer, or a callback of the collector."""
    if _asked:
        raise SystemExit(128 + _asked[0])
