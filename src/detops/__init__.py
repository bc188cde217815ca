"""The detection operators that model export and runtimes lack, for NumPy arrays."""

from detops._config import show_config
from detops._registry import use_backend
from detops._threads import get_num_threads, set_num_threads
from detops._version import __version__
from detops.boxes import decode_bbox, encode_bbox
from detops.cumulative import cummax, cummin
from detops.scatter_nd import scatter_nd

__all__ = [
    "__version__",
    "cummax",
    "cummin",
    "decode_bbox",
    "encode_bbox",
    "get_num_threads",
    "scatter_nd",
    "set_num_threads",
    "show_config",
    "use_backend",
]
