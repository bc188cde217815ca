"""Writing files."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def check_writable(path: str | Path, argument: str) -> None:
    """Raise before anything is computed where a file cannot be written at the end.

    Raises
    ------
    ValueError
        If the folder of ``path`` is missing or cannot be written to, or ``path`` is a folder.
    """
    folder = Path(path).parent
    if Path(path).is_dir():
        raise ValueError(f"{argument}: expected the path of a file, got the folder {str(path)!r}")
    if not folder.is_dir():
        raise ValueError(f"{argument}: expected a path in a folder that exists, got {str(path)!r}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"{argument}: expected a path in a folder that can be written to, got {str(path)!r}")


@contextmanager
def written_in_one_step(path: str | Path, scratch: str | Path | None = None) -> Iterator[BinaryIO]:
    """Give a file to write to that is at ``path`` once the block ends: complete, or after a failure not at all.

    Until then it is in the folder ``scratch`` of the same file system, by default beside where it is going to be.
    """
    path = Path(path)
    partial = Path(scratch or path.parent, f".detops-{secrets.token_hex(8)}{path.suffix}")
    # The name is known before the file is there: an interruption at any moment finds what to remove.
    try:
        with open(partial, "xb") as file:
            yield file
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
