"""The command ``detops run``."""

from __future__ import annotations

import argparse
import glob
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DONE, BAD_INPUT = 0, 2
WILD = frozenset("*?[")

Task = tuple[dict[str, str], str]  # the file of each input, and the file to write


def add_parsers(subparsers: Any) -> None:
    """Add the command ``detops run``."""
    command = subparsers.add_parser(
        "run",
        help="run an exported model on images and arrays",
        description="Run an ONNX model, with the operators of the domains mmcv, mmdeploy and detops. One file for each "
        "input gives one result; a pattern in place of a file runs every file that it matches.",
    )
    command.add_argument("model", metavar="MODEL", help="path of an ONNX model")
    command.add_argument(
        "--input",
        metavar="NAME=FILE",
        action="append",
        required=True,
        help="an input's name and its .npy, .npz or image; or a quoted pattern such as 'image=pages/*.png'",
    )
    command.add_argument("--engine", choices=("onnxruntime", "reference"), default="onnxruntime")
    command.add_argument("-o", "--output", metavar="OUT", help="the .npz to write; for many files a folder")
    command.add_argument("--draw", metavar="OUT.png", help="draw the boxes of the results over the image")
    command.add_argument("--workers", type=int, metavar="N", help="spread many files over N processes, with Dask")
    command.add_argument("--scheduler", metavar="ADDRESS", help="spread many files over a Dask cluster that runs")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the model; return the exit code."""
    files = dict(_named(text) for text in arguments.input)
    patterns = [name for name, file in files.items() if WILD & set(file)]
    if patterns:
        return _run_many(arguments, files, patterns)
    if arguments.workers is not None or arguments.scheduler is not None:
        raise ValueError("workers: expected a pattern of many files as an input, got single files")
    return _run_one(arguments, files)


def _named(text: str) -> tuple[str, str]:
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise ValueError(f"input: expected NAME=FILE, got {text!r}")
    return name, file


def _run_one(arguments: argparse.Namespace, files: dict[str, str]) -> int:
    from detops.onnx import _run

    model = _run.Model(arguments.model, arguments.engine)
    results = model({name: model.read(name, file) for name, file in files.items()})
    for name, array in results.items():
        print(f"{name}  {array.dtype}  {array.shape}")
    if arguments.output:
        _run.save(arguments.output, results)
    if arguments.draw:
        images = [file for file in files.values() if Path(file).suffix.lower() not in (".npy", ".npz")]
        if not images:
            raise ValueError("draw: expected an image among the inputs")
        _run.draw(images[0], results, arguments.draw)
    return DONE


def _run_many(arguments: argparse.Namespace, files: dict[str, str], patterns: list[str]) -> int:
    from detops.onnx import _run

    if arguments.draw:
        raise ValueError("draw: expected a single image, got a pattern")
    if not arguments.output:
        raise ValueError("output: expected a folder for the results of many files")
    tasks = _tasks(files, patterns, Path(arguments.output))
    # What is wrong with the model is wrong for every file: say it once.
    _run.opened(arguments.model, arguments.engine, 0, os.path.getmtime(arguments.model))
    os.makedirs(arguments.output, exist_ok=True)
    waiting = [task for task in tasks if not os.path.exists(task[1])]
    spread = _spread if arguments.workers is not None or arguments.scheduler is not None else _one_by_one
    failed = 0
    # A worker that is killed leaves the file that it was writing: that goes with the folder.
    with tempfile.TemporaryDirectory(
        prefix=".detops-", dir=os.path.abspath(arguments.output), ignore_cleanup_errors=True
    ) as scratch:
        for task, error in _with_progress(spread(arguments, waiting, scratch), len(waiting)):
            if error is not None:
                failed += 1
                text = " ".join(str(error).split())
                names = ", ".join(file for file in task[0].values() if file not in text)
                print(f"detops: {names}{': ' * bool(names)}{text}", file=sys.stderr)
    print(f"{len(waiting) - failed} done, {len(tasks) - len(waiting)} were there, {failed} failed")
    return BAD_INPUT if failed else DONE


def _tasks(files: dict[str, str], patterns: list[str], folder: Path) -> list[Task]:
    """One task for each file that the pattern matches; other inputs are the same for all."""
    if len(patterns) > 1:
        raise ValueError(f"input: expected one pattern, got {len(patterns)}")
    (name,) = patterns
    matched = sorted(glob.glob(files[name], recursive=True))
    if not matched:
        raise ValueError(f"input: expected files that match {files[name]!r}, got none")
    tasks = [({**files, name: file}, str(folder / f"{Path(file).stem}.npz")) for file in matched]
    if len({output for _, output in tasks}) < len(tasks):
        raise ValueError(f"input: expected files of different names for {files[name]!r}, got some that are the same")
    return tasks


Outcome = tuple[Task, BaseException | None]


def _one_by_one(arguments: argparse.Namespace, tasks: list[Task], scratch: str) -> Iterator[Outcome]:
    from detops.onnx import _run

    for task in tasks:
        try:
            _run.run_file(arguments.model, arguments.engine, 0, scratch, *task)
        except (ImportError, OSError, TypeError, ValueError) as error:
            yield task, error
        else:
            yield task, None


def _spread(arguments: argparse.Namespace, tasks: list[Task], scratch: str) -> Iterator[Outcome]:
    """Run tasks on Dask workers, each with a model of its own; the work of one that dies goes to another."""
    from detops.onnx import _run

    try:
        import distributed
    except ImportError as error:
        raise ImportError(f'workers need dask.distributed ({error}); pip install "detops[dask]" brings it') from error
    if arguments.scheduler is not None:
        client = distributed.Client(arguments.scheduler)
        threads = 1
    else:
        if arguments.workers < 1:
            raise ValueError(f"workers: expected at least 1, got {arguments.workers}")
        threads = max((os.cpu_count() or 1) // arguments.workers, 1)
        client = distributed.Client(n_workers=arguments.workers, threads_per_worker=1, dashboard_address=None)
    with client:
        # Workers of a cluster may have another working directory.
        model = os.path.abspath(arguments.model)
        asked = {
            client.submit(
                _run.run_file,
                model,
                arguments.engine,
                threads,
                scratch,
                {name: os.path.abspath(file) for name, file in files.items()},
                os.path.abspath(output),
                pure=False,
            ): (files, output)
            for files, output in tasks
        }
        for future in distributed.as_completed(asked):
            yield asked[future], future.exception()
            future.release()


def _with_progress(outcomes: Iterator[Outcome], total: int) -> Iterator[Outcome]:
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:
        return outcomes
    return iter(track(outcomes, "running", total=total, console=Console(stderr=True), transient=True))
