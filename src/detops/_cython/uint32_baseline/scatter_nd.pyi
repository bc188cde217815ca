import numpy as np

def scatter_check(indices: np.ndarray, lengths: np.ndarray, bad: np.ndarray) -> None: ...
def scatter_nd(
    values: np.ndarray,
    indices: np.ndarray,
    updates: np.ndarray,
    lengths: np.ndarray,
    reduction: int,
    out: np.ndarray,
) -> None: ...
