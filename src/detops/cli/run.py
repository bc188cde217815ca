"""The command ``detops run``."""

from __future__ import annotations

import argparse
import glob
import math
import os
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from detops._draw import picture_format
from detops._extras import need
from detops._files import check_writable
from detops.cli import _jobs, _termination
from detops.cli._arrays import SUFFIXES
from detops.cli._images import FITS, PRESETS, Preparation
from detops.cli._jobs import ENGINES, Job, Task

DONE, BAD_INPUT = 0, 2
WILD = frozenset("*?[")


def add_parsers(subparsers: Any) -> None:
    """Add the command ``detops run``."""
    command = subparsers.add_parser(
        "run",
        help="run an exported model on images and arrays",
        description="Run an ONNX model, with the operators of the domains mmcv, mmdeploy and detops. One file for each "
        "input gives one result; a pattern or a folder in place of a file runs every file of it.",
    )
    command.add_argument("model", metavar="MODEL", help="path of an ONNX model")
    command.add_argument(
        "--input",
        metavar="NAME=FILE",
        action="append",
        required=True,
        help="an input's name and its .npy, .npz or image; or a folder, or a quoted pattern: 'image=pages/*.png'",
    )
    command.add_argument("--engine", choices=ENGINES, default=ENGINES[0])
    command.add_argument("-o", "--output", metavar="OUT", help="the .npz to write; for many files a folder")
    command.add_argument(
        "--draw", metavar="OUT.png", help="draw the boxes of the results over the image; for many files a folder"
    )
    command.add_argument("--workers", type=int, metavar="N", help="spread many files over N processes, with Dask")
    command.add_argument("--scheduler", metavar="ADDRESS", help="spread many files over a Dask cluster that runs")
    _add_preparation(command.add_argument_group("what is done to images before the network sees them"))
    command.set_defaults(run=run)


def _add_preparation(group: Any) -> None:
    group.add_argument(
        "--preset", choices=PRESETS, help="what exports of MMDetection, torchvision, YOLO (Ultralytics) or YOLOX expect"
    )
    group.add_argument("--resize", metavar="HxW", help="bring images to this height and width")
    group.add_argument("--fit", choices=FITS, help="keep the ratio of the sides and fill up (default), or stretch")
    group.add_argument("--scale", metavar="X", help="multiply levels, which go from 0 to 255, such as by 1/255")
    group.add_argument("--mean", metavar="X[,X,X]", help="then subtract this, one number or one for each channel")
    group.add_argument("--std", metavar="X[,X,X]", help="then divide by this")
    group.add_argument(
        "--bgr", action=argparse.BooleanOptionalAction, help="give the channels in the order blue, green, red"
    )


def preparation(arguments: argparse.Namespace) -> Preparation:
    """Return what the options say is done to images."""
    base = PRESETS[arguments.preset] if arguments.preset else Preparation()
    given: dict[str, Any] = {}
    if arguments.resize is not None:
        given["resize"] = _size(arguments.resize)
    if arguments.scale is not None:
        (given["scale"],) = _numbers("scale", arguments.scale, 1)
    for name in ("mean", "std"):
        if getattr(arguments, name) is not None:
            given[name] = _numbers(name, getattr(arguments, name), 4)
    for name in ("scale", "std"):
        if name in given and 0 in (given[name] if name == "std" else (given[name],)):
            raise ValueError(f"{name}: expected numbers other than 0, got {getattr(arguments, name)!r}")
    given |= {name: getattr(arguments, name) for name in ("fit", "bgr") if getattr(arguments, name) is not None}
    chosen = replace(base, **given)
    if arguments.fit and not (chosen.resize or chosen.open_size):
        raise ValueError("fit: expected --resize as well, which says the size")
    return chosen


def _size(text: str) -> tuple[int, int]:
    height, _, width = text.lower().partition("x")
    if not (height.isdecimal() and width.isdecimal() and int(height) and int(width)):
        raise ValueError(f"resize: expected HEIGHTxWIDTH such as 640x640, got {text!r}")
    return int(height), int(width)


def _numbers(name: str, text: str, most: int) -> tuple[float, ...]:
    try:
        numbers = tuple(float(Fraction(part.strip())) for part in text.split(","))
    except (ValueError, ZeroDivisionError, OverflowError):
        numbers = ()
    if not 1 <= len(numbers) <= most or not all(map(math.isfinite, numbers)):
        wanted = "a number" if most == 1 else "numbers with commas between them"
        raise ValueError(f"{name}: expected {wanted}, got {text!r}")
    return numbers


def run(arguments: argparse.Namespace) -> int:
    """Run the model; return the exit code."""
    files = _named(arguments.input)
    for name in ("output", "draw"):
        if getattr(arguments, name) == "":
            raise ValueError(f"{name}: expected a path, got none")
    job = Job(arguments.model, arguments.engine, 0, preparation(arguments))
    many = {name: matched for name, file in files.items() if (matched := _matched(file)) is not None}
    pictures = [name for name, file in files.items() if any(map(_jobs.is_picture, many.get(name, [file])))]
    if arguments.draw and not pictures:
        raise ValueError("draw: expected an image among the inputs")
    if job.preparation != _jobs.AS_IT_IS and not pictures:
        raise ValueError("input: expected an image, which the options prepare, got arrays alone")
    if many:
        return _run_many(arguments, job, files, many)
    if arguments.workers is not None or arguments.scheduler is not None:
        raise ValueError("workers: expected a pattern of many files as an input, got single files")
    return _run_one(arguments, job, files)


def _named(texts: list[str]) -> dict[str, str]:
    files: dict[str, str] = {}
    for text in texts:
        name, equals, file = text.partition("=")
        if not (name and equals and file):
            raise ValueError(f"input: expected NAME=FILE, got {text!r}")
        if name in files:
            raise ValueError(f"input: expected one file for each input, got {name!r} twice")
        files[name] = file
    return files


def _matched(file: str) -> list[str] | None:
    """The files that a pattern matches or a folder holds; None for the name of a single file."""
    if os.path.isdir(file):
        names = (os.path.join(file, name) for name in os.listdir(file) if not name.startswith("."))
        matched = sorted(name for name in names if Path(name).suffix.lower() in _readable() and os.path.isfile(name))
    elif os.path.lexists(file) or not WILD & set(file):
        return None
    else:
        matched = sorted(name for name in glob.glob(_pattern(file), recursive=True) if os.path.isfile(name))
    if not matched:
        raise ValueError(f"input: expected files that match {file!r}, got none")
    return matched


def _readable() -> set[str]:
    return {*SUFFIXES, *need("PIL.Image", "cli", "reading a folder of images").registered_extensions()}


def _pattern(file: str) -> str:
    """The pattern, in which folders that exist are meant by their names, whatever characters these have."""
    parts = Path(file).parts
    count = len(parts)
    while count and not os.path.lexists(os.path.join(*parts[:count])):
        count -= 1
    return os.path.join(*(glob.escape(part) for part in parts[:count]), *parts[count:])


def _run_one(arguments: argparse.Namespace, job: Job, files: dict[str, str]) -> int:
    for argument, path in (("output", arguments.output), ("draw", arguments.draw)):
        if path:
            check_writable(path, argument)
    if arguments.draw:
        picture_format(arguments.draw, "draw")
    model = _jobs.Model(job.model, job.engine)
    read, results = job.run(model, Task(files, arguments.output, arguments.draw))
    for name, each in read.items():
        print(f"{name} from {each.words(files[name], job.preparation)}")
    for name, array in results.items():
        print(f"{name}  {array.dtype}  {array.shape}")
    if arguments.draw:
        print(f"The picture is in {arguments.draw}")
    print(
        f"The results are in {arguments.output}" if arguments.output else "The results are not saved: -o OUT.npz does"
    )
    return DONE


def _run_many(arguments: argparse.Namespace, job: Job, files: dict[str, str], many: dict[str, list[str]]) -> int:
    folders = [folder for folder in (arguments.output, arguments.draw) if folder]
    if not folders:
        raise ValueError("output: expected a folder for the results of many files (or --draw with one for pictures)")
    for argument, folder in (("output", arguments.output), ("draw", arguments.draw)):
        if folder and os.path.lexists(folder) and not os.path.isdir(folder):
            raise ValueError(f"{argument}: expected a folder for many files, got the file {folder!r}")
    tasks = _tasks(files, many, arguments.output, arguments.draw)
    # A fault of the model is one for every file: say it once.
    _jobs.opened(job.model, job.engine, 0, os.path.getmtime(job.model))
    waiting = [task for task in tasks if not all(map(os.path.exists, task.targets()))]
    failed = 0
    with ExitStack() as stack:
        scratch = {}
        for folder in dict.fromkeys(map(os.path.abspath, folders)):
            os.makedirs(folder, exist_ok=True)
            # A worker that is killed leaves the file that it was writing: that goes with the folder.
            scratch[folder] = stack.enter_context(
                tempfile.TemporaryDirectory(prefix=".detops-", dir=folder, ignore_cleanup_errors=True)
            )
        job = replace(job, scratch=scratch)
        spread = _spread if arguments.workers is not None or arguments.scheduler is not None else _one_by_one
        # Closed before the folders are removed: no worker writes any more then.
        outcomes = stack.enter_context(closing(spread(arguments, job, waiting)))
        for task, error in _with_progress(outcomes, len(waiting)):
            _termination.check()
            if error is not None:
                failed += 1
                text = " ".join(error.split())
                names = ", ".join(file for file in task.files.values() if file not in text)
                print(f"detops: {names}{': ' * bool(names)}{text}", file=sys.stderr)
    if done := [*job.preparation.size_words(), *job.preparation.words()]:
        print(f"images: {', '.join(done)}")
    print(f"{len(waiting) - failed} done, {len(tasks) - len(waiting)} were there, {failed} failed")
    if arguments.draw:
        print(f"The pictures are in {arguments.draw}")
    print(f"The results are in {arguments.output}" if arguments.output else "The results are not saved: -o FOLDER does")
    return BAD_INPUT if failed else DONE


def _tasks(files: dict[str, str], many: dict[str, list[str]], results: str | None, pictures: str | None) -> list[Task]:
    """One task for each file that the pattern matches; other inputs are the same for all."""
    if len(many) > 1:
        raise ValueError(f"input: expected one pattern, got {len(many)}")
    ((name, matched),) = many.items()
    if len({Path(file).stem for file in matched}) < len(matched):
        raise ValueError(f"input: expected files of different names for {files[name]!r}, got some that are the same")

    def target(folder: str | None, file: str, suffix: str) -> str | None:
        return None if folder is None else os.path.join(os.path.abspath(folder), Path(file).stem + suffix)

    return [
        Task({**files, name: file}, target(results, file, ".npz"), target(pictures, file, ".png")) for file in matched
    ]


Outcome = tuple[Task, str | None]


def _one_by_one(arguments: argparse.Namespace, job: Job, tasks: list[Task]) -> Generator[Outcome]:
    for task in tasks:
        yield task, job.attempt(task)


# Dask serves its state over HTTP also without a dashboard, and warns where the port it then takes by itself is in use.
NO_DASHBOARD: dict[str, Any] = {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}


def _spread(arguments: argparse.Namespace, job: Job, tasks: list[Task]) -> Generator[Outcome]:
    """Run tasks on Dask workers, each with a model of its own; the work of one that dies goes to another."""
    distributed = need("distributed", "dask", "spreading files over workers")
    if arguments.scheduler is not None:
        client = distributed.Client(arguments.scheduler)
        threads = 1
    else:
        if arguments.workers < 1:
            raise ValueError(f"workers: expected at least 1, got {arguments.workers}")
        threads = max((os.cpu_count() or 1) // arguments.workers, 1)
        client = distributed.Client(n_workers=arguments.workers, threads_per_worker=1, **NO_DASHBOARD)
    # Workers of a cluster may have another working directory.
    job = replace(job, model=os.path.abspath(job.model), threads=threads)
    with client:
        asked = {
            client.submit(
                job.attempt,
                replace(task, files={name: os.path.abspath(file) for name, file in task.files.items()}),
                pure=False,
            ): task
            for task in tasks
        }
        for future in distributed.as_completed(asked):
            yield asked[future], _outcome(future)
            future.release()


def _outcome(future: Any) -> str | None:
    """Return why a task failed; an exception is Dask's own, such as that its workers died one after another."""
    try:
        return future.result()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _with_progress(outcomes: Iterator[Outcome], total: int) -> Iterator[Outcome]:
    if not sys.stderr.isatty():  # a log has no use for a bar
        return outcomes
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:
        return outcomes
    return iter(track(outcomes, "running", total=total, console=Console(stderr=True), transient=True))
