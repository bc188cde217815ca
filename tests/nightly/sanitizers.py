"""The checks of ``stress.py`` under the compiler's sanitizers: ``python tests/nightly/sanitizers.py [--seconds N]``.

The compiled modules are built twice in a folder of their own (``--folder``, which a second run takes up): with
AddressSanitizer and UndefinedBehaviorSanitizer for every vector instruction set, and with ThreadSanitizer for the
baseline. Needs Linux, GCC and its sanitizers, and some minutes of two processors for the builds. A sanitizer's first
report ends a run.
"""

import argparse
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from detops._cython.cpu import instruction_sets

ROOT = Path(__file__).parents[2]

# Overflows are looked for although the modules are built to wrap around, but where wrapping around is the result.
FLAGS = {
    "address,undefined": "-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all",
    "thread": "-fsanitize=thread",
}
# No flags of the caller's come last, but a compiler of our own can add some.
COMPILER = """#!/bin/sh
wraps=-fno-wrapv level=-O1
case "$*" in *scatter_nd*) wraps=-fwrapv ;; esac
# Of builds for vectors the vector code is what is to be checked.
case "$*" in *-mavx*) level="-O2 -ftree-vectorize" ;; esac
exec {compiler} "$@" $level -g -fno-omit-frame-pointer $wraps {flags}
"""
SETTINGS = {
    # Python frees nothing at exit, and results of calloc may be too large on purpose.
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:abort_on_error=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:exitcode=66",
}
LIBRARIES = {"address,undefined": "libasan.so", "thread": "libtsan.so"}
# Under TSan a fork amid threads is refused, and each of these maps more than a limit allows.
PARTS = {"address,undefined": ("shapes", "parameters", "recycling", "forks"), "thread": ("shapes", "recycling")}
# What depends on vectors; threads and memory do not.
PARTS_OF_VECTORS = ("shapes",)


def build(kind: str, folder: Path) -> Path:
    """Return the folder of a copy of detops whose compiled modules are checked."""
    copy, compiler = folder / "source", folder / "cc"
    if (folder / "built").exists():
        return copy
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "build", "*.so", "*.egg-info"), dirs_exist_ok=True)
    compiler.write_text(COMPILER.format(compiler=os.environ.get("CC", "gcc"), flags=FLAGS[kind]))
    compiler.chmod(0o755)
    environment = {**os.environ, "CC": str(compiler), "LDSHARED": f"{compiler} -shared"}
    if kind == "thread":
        environment["DETOPS_BUILD"] = "baseline"
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    with (folder / "build.log").open("w") as log:
        subprocess.run(command, cwd=copy, env=environment, stdout=log, stderr=log, check=True)
    (folder / "built").touch()
    return copy


def check(kind: str, isa: str, source: Path, seconds: float, seed: int) -> bool:
    """Run the parts of ``stress.py`` on a checked build; return whether all ended well."""
    parts = PARTS[kind] if isa == "baseline" else PARTS_OF_VECTORS
    libraries = [
        subprocess.check_output([os.environ.get("CC", "gcc"), f"-print-file-name={name}"], text=True).strip()
        for name in (LIBRARIES[kind], "libstdc++.so")
    ]
    environment = {
        **os.environ,
        **SETTINGS,
        "PYTHONPATH": str(source / "src"),
        "DETOPS_ISA": isa,
        "OPENBLAS_NUM_THREADS": "1",
        # Python's own pools hide what reads beyond an object.
        "PYTHONMALLOC": "malloc",
    }
    command = [sys.executable, "-m", "tests.nightly.stress", *parts, f"--seconds={seconds}", f"--seed={seed}"]
    # ThreadSanitizer of older compilers knows no address space that is laid out at random as widely as Linux does.
    start = ["setarch", platform.machine(), "-R"] if shutil.which("setarch") else []
    start += ["env", f"LD_PRELOAD={':'.join(libraries)}"]
    print(f"{kind}, {isa}: {shlex.join(command)}", flush=True)
    return subprocess.run([*start, *command], cwd=source, env=environment, check=False).returncode == 0


def main() -> int:
    """Build, run and say what was found."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=300, help="for each part")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--folder", type=Path, help="where the builds lie")
    options.add_argument("--only", choices=list(FLAGS), action="append")
    given = options.parse_args()
    folder = (given.folder or Path(tempfile.mkdtemp(prefix="sanitizers-"))).absolute()
    failed = []
    for kind in given.only or FLAGS:
        began = time.monotonic()
        place = folder / kind.replace(",", "-")
        place.mkdir(parents=True, exist_ok=True)
        source = build(kind, place)
        print(f"{kind}: built in {time.monotonic() - began:.0f} s in {place}", flush=True)
        for isa in ("baseline",) if kind == "thread" else reversed(instruction_sets()):
            if not check(kind, isa, source, given.seconds, given.seed):
                failed.append(f"{kind} ({isa})")
    print(f"sanitizers: faults under {', '.join(failed)}" if failed else "sanitizers: no fault")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
