"""Memory for results: what large ones have left is used again, see ``_cython/memory.pyx``."""

from detops import _environment
from detops._cython import memory

MIB = 1 << 20

# DETOPS_KEEP_MIB: how much memory that nobody uses is kept, in MiB; 0 keeps none.
keep_mib = _environment.number("DETOPS_KEEP_MIB", 256, at_least=0, at_most=1 << 20)
memory.set_most_bytes(keep_mib * MIB)
empty = memory.empty
