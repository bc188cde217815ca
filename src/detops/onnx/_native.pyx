"""The library of custom operators that ONNX Runtime loads. Python only fills its table; callbacks never touch Python.

The operators are data (``_table.py``, turned into ``native/table.pxi``): ``native/families`` knows their shapes and calls
the same compiled kernels as the public functions.
"""

include "../_cython/scalar.pxi"
include "../_cython/executor.pxi"
include "../_cython/allocate.pxi"
include "../_cython/boxes.pxi"
include "../_cython/cumulative.pxi"
include "../_cython/deform_conv.pxi"
include "../_cython/grid_sample.pxi"
include "../_cython/instance_norm.pxi"
include "../_cython/multi_scale_deform_attn.pxi"
include "../_cython/nms.pxi"
include "../_cython/rois.pxi"
include "../_cython/soft_nms.pxi"

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.math cimport INFINITY, isfinite, isnan

include "slots.pxi"
include "native/half.pxi"
include "native/api.pxi"
include "native/table.pxi"
include "native/attributes.pxi"
include "native/call.pxi"
include "native/checks.pxi"
include "native/families/boxes.pxi"
include "native/families/cumulative.pxi"
include "native/families/deform_conv.pxi"
include "native/families/grid_sample.pxi"
include "native/families/instance_norm.pxi"
include "native/families/multi_scale_deform_attn.pxi"
include "native/families/nms.pxi"
include "native/families/roi.pxi"
include "native/families/soft_nms.pxi"
include "native/registration.pxi"
include "native/inference.pxi"
include "native/define.pxi"
