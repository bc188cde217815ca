"""Writes the folder of a SavedModel."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from detops._files import check_writable

GRAPH = "saved_model.pb"
FINGERPRINT = "fingerprint.pb"  # hashes of the graph, which is another one now; loaders do without


def check_target(source: Path, target: Path) -> None:
    """Raise ValueError where a copy of the folder `source` cannot be written to `target`."""
    if target.is_dir():
        if any(target.iterdir()):
            raise ValueError(f"output: expected a folder that is empty or not there yet, got {str(target)!r}")
    elif target.exists():
        raise ValueError(f"output: expected a folder, as for every SavedModel, got the file {str(target)!r}")
    else:
        check_writable(target, "output")
    if target.resolve().is_relative_to(source.resolve()):
        raise ValueError(f"output: expected a folder that is not inside the model's own, got {str(target)!r}")


def write(data: bytes, source: Path, target: Path) -> None:
    """Write a changed graph and what else is in the folder `source`; after a failure, nothing is left."""
    partial = target.resolve().parent / f".detops-{secrets.token_hex(8)}"
    try:
        shutil.copytree(source, partial, ignore=shutil.ignore_patterns(GRAPH, FINGERPRINT))
        (partial / GRAPH).write_bytes(data)
        os.replace(partial, target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
