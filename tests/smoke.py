"""What a wheel must do in an environment that has numpy alone. Run as a script."""

import sys

import numpy as np

import detops

detops.show_config()
assert "numba" not in sys.modules
assert "onnx" not in sys.modules
assert detops.cummax(np.array([1.0, 3.0, 2.0])).indices.tolist() == [0, 1, 1]
anchors = np.array([[0, 0, 10, 20]], np.float32)
assert detops.decode_bbox(np.zeros((1, 4), np.float32), anchors).tolist() == anchors.tolist()
for backend in ("numba", "cuda"):
    try:
        detops.cummax(np.ones(3), backend=backend)
        complaint = "none"
    except ImportError as error:
        complaint = str(error)
    assert f"the extra {backend!r} of detops brings it" in complaint, complaint
print("the wheel works")
