"""Writing files."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def written_in_one_step(path: str | Path, scratch: str | Path | None = None) -> Iterator[BinaryIO]:
    """Give a file to write to that is at ``path`` once the block ends: complete, or after a failure not at all.

    Until then it is in the folder ``scratch`` of the same file system, by default beside where it is going to be.
    """
    path = Path(path)
    handle, name = tempfile.mkstemp(dir=scratch or path.parent, prefix=".detops-", suffix=path.suffix)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        # mkstemp's file is its owner's alone; this one is as others are here.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
