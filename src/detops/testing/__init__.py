"""Test an implementation of your own against detops: strategies for inputs, and the suite that compares.

It needs ``hypothesis``. See docs/fuzz_your_backend.md.
"""

from detops.testing.arguments import Arguments, arguments
from detops.testing.conformance import check_backend
from detops.testing.families import STRATEGIES

__all__ = ["STRATEGIES", "Arguments", "arguments", "check_backend"]
