import numpy as np

def deform_conv2d(
    x: np.ndarray,
    offset: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    mask: np.ndarray | None,
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    groups: int,
    offset_groups: int,
    im2col_step: int,
    out: np.ndarray,
) -> None: ...
