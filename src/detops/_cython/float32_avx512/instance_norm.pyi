import numpy as np

def instance_norm(
    x: np.ndarray, scale: np.ndarray | None, bias: np.ndarray | None, epsilon: float, out: np.ndarray
) -> None: ...
