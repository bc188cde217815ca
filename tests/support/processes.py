"""Programs in a process of their own, for what is decided when detops is imported."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Makes packages look as if they were not installed.
BLOCK = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r} or name in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
"""


def run(
    code: str, *arguments: str, blocked: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program, without some packages or modules; one that hangs is an error."""
    return subprocess.run(
        [sys.executable, "-c", BLOCK.format(blocked=blocked) + code, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def output(code: str, *arguments: str, blocked: tuple[str, ...] = (), **environment: str) -> str:
    """What a program prints; one that fails is an error."""
    done = run(code, *arguments, blocked=blocked, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
