import numpy as np

def roi_align_points(
    rois: np.ndarray,
    output_size: tuple[int, int],
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
    points: np.ndarray,
) -> None: ...
def roi_align(
    features: np.ndarray,
    rois: np.ndarray,
    batch_indices: np.ndarray,
    output_size: tuple[int, int],
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
    mode: int,
    out: np.ndarray,
) -> None: ...
