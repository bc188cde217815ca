import numpy as np

def nms(
    boxes: np.ndarray,
    scores: np.ndarray,
    labels: np.ndarray | None,
    thresholds: np.ndarray | None,
    iou_threshold: float,
    score_threshold: float,
    strict: bool,
    top_k: int,
    limit: int,
    offset: float,
    selected: np.ndarray,
    found: np.ndarray,
) -> None: ...
def non_max_suppression(
    boxes: np.ndarray,
    scores: np.ndarray,
    thresholds: np.ndarray | None,
    iou_threshold: float,
    score_threshold: float,
    strict: bool,
    top_k: int,
    form: int,
    offset: float,
    selected: np.ndarray,
    found: np.ndarray,
) -> None: ...
def best_of_classes(scores: np.ndarray, selected: np.ndarray, total: int, found: np.ndarray) -> None: ...
def selected_rows(selected: np.ndarray, found: np.ndarray, rows: np.ndarray) -> None: ...
