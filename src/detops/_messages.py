"""How messages show what they are about."""

from typing import Any

# How much of a value a message shows.
_LONGEST = 100


def shown(value: Any) -> str:
    """Return what a value looks like, in one line and not at length."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # an integer of thousands of digits, or a repr that fails
        return f"an object of {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... of {type(value).__name__}"
