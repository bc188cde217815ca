import numpy as np

def decode_bbox(
    box_predictions: np.ndarray,
    anchors: np.ndarray,
    lower_clip: float,
    decode_clip: float,
    scales: tuple[float, float, float, float],
    means: tuple[float, float, float, float],
    classes: int,
    inner: int,
    out: np.ndarray,
) -> None: ...
def encode_bbox(
    boxes: np.ndarray,
    anchors: np.ndarray,
    scales: tuple[float, float, float, float],
    means: tuple[float, float, float, float],
    classes: int,
    inner: int,
    out: np.ndarray,
) -> None: ...
