"""The detection operators that model export and runtimes lack, for NumPy arrays."""

from detops._config import show_config
from detops._registry import use_backend
from detops._threads import get_num_threads, set_num_threads
from detops._version import __version__
from detops.box_iou import box_iou
from detops.boxes import decode_bbox, encode_bbox
from detops.cumulative import cummax, cummin
from detops.deform_conv import deform_conv2d
from detops.grid_sample import grid_sample
from detops.instance_norm import instance_norm
from detops.nms import batched_nms, nms
from detops.non_max_suppression import non_max_suppression, non_max_suppression_padded
from detops.roi_align import roi_align
from detops.roi_pool import roi_pool
from detops.scatter_nd import scatter_nd

__all__ = [
    "__version__",
    "batched_nms",
    "box_iou",
    "cummax",
    "cummin",
    "decode_bbox",
    "deform_conv2d",
    "encode_bbox",
    "get_num_threads",
    "grid_sample",
    "instance_norm",
    "nms",
    "non_max_suppression",
    "non_max_suppression_padded",
    "roi_align",
    "roi_pool",
    "scatter_nd",
    "set_num_threads",
    "show_config",
    "use_backend",
]
