import numpy as np

def roi_pool(
    features: np.ndarray,
    rois: np.ndarray,
    batch_indices: np.ndarray,
    output_size: tuple[int, int],
    spatial_scale: float,
    out: np.ndarray,
) -> None: ...
