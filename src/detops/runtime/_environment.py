"""Settings that come from environment variables."""

import os


def number(name: str, default: int, at_least: int, at_most: int) -> int:
    """Return the whole number that a variable holds, the default where it is unset or empty."""
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or not at_least <= int(text) <= at_most:
        raise ValueError(f"{name}: expected a whole number from {at_least} to {at_most}, got {text!r}")
    return int(text)
