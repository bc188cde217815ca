"""All that runs for a long time: ``python tests/nightly/everything.py [--seconds N] [--seed N]``.

Each part of ``stress.py``, the damaged files of ``fuzz_files.py`` and the parts under each sanitizer run for N seconds;
one that fails does not keep the others from running.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPTS = (
    *(["-m", "tests.nightly.stress", part] for part in ("shapes", "parameters", "recycling", "limits", "forks")),
    ["tests/nightly/fuzz_files.py"],
    ["tests/nightly/sanitizers.py"],
)


def main() -> int:
    """Run all scripts and say which of them found a fault."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=300)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    failed, began = [], time.monotonic()
    for script in SCRIPTS:
        name = script[-1]
        print(f"== {name}", flush=True)
        command = [sys.executable, *script, f"--seconds={given.seconds}", f"--seed={given.seed}"]
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            failed.append(name)
    found = f"faults in {', '.join(failed)}" if failed else "no fault"
    print(f"== {found}, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
