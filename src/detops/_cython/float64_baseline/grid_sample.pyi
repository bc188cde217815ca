import numpy as np

def grid_sample(
    x: np.ndarray, grid: np.ndarray, taps: int, border: int, align_corners: bool, out: np.ndarray
) -> None: ...
