"""Soft non-maximum suppression: the box of highest score is taken, the scores of all others are lowered, and so on.

The boxes are dealt out to parts; of each the best box is found while its scores are lowered. Which of these is the
best of all finds one thread, in a launch of its own. All launches are queued at once: the host does not wait for any.
"""

import numpy as np

from detops._core.iou import area_of_sides, shared_area, side_length
from detops._core.soft_nms import lowered_score, overlap_or_none, soft_weight
from detops._cuda.device import SIMULATED, cuda, empty, jit, launch

# The simulator shows the same mistakes with few parts.
PARTS = 2 if SIMULATED else 1024
NONE = -1


@jit
def load(boxes, given, dropped, offset, areas, scores, best):
    """One item is a part: areas and scores of its boxes, and the best of them."""
    for part in range(cuda.grid(1), best.size, cuda.gridsize(1)):
        best[part] = NONE
        for i in range(part, scores.size, best.size):
            areas[i] = area_of_sides(
                side_length(boxes[i, 0], boxes[i, 2], offset), side_length(boxes[i, 1], boxes[i, 3], offset)
            )
            # Not NaN, which no comparison would ever find again.
            scores[i] = given[i] if given[i] > dropped else dropped
            if scores[i] > dropped and (best[part] == NONE or scores[i] > scores[best[part]]):
                best[part] = i


@jit
def take(boxes, dropped, best, scores, dets, selected, found):
    """The one item: take the best of all parts, on a tie the first box, where any is left."""
    for item in range(cuda.grid(1), 1, cuda.gridsize(1)):
        taken = found[item]
        chosen = NONE
        for part in range(best.size):
            i = best[part]
            if i != NONE and (
                chosen == NONE or scores[i] > scores[chosen] or (scores[i] == scores[chosen] and i < chosen)
            ):
                chosen = i
        if chosen != NONE:
            for k in range(4):
                dets[taken, k] = boxes[chosen, k]
            dets[taken, 4] = scores[chosen]
            selected[taken] = chosen
            scores[chosen] = dropped
            found[item] = taken + 1


@jit
def lower_scores(
    boxes, areas, step, iou_threshold, method, sigma, min_score, dropped, offset, selected, found, scores, best
):
    """One item is a part: lower the scores of its boxes by what they share with the one that was just taken."""
    for part in range(cuda.grid(1), best.size, cuda.gridsize(1)):
        best[part] = NONE
        # No box was left for this step.
        if found[0] <= step:
            continue
        taken = selected[step]
        for i in range(part, scores.size, best.size):
            if scores[i] > dropped:
                shared = shared_area(
                    boxes[taken, 0],
                    boxes[taken, 1],
                    boxes[taken, 2],
                    boxes[taken, 3],
                    boxes[i, 0],
                    boxes[i, 1],
                    boxes[i, 2],
                    boxes[i, 3],
                    offset,
                )
                overlap = overlap_or_none(shared, areas[taken], areas[i])
                scores[i] = lowered_score(
                    scores[i], soft_weight(overlap, method, iou_threshold, sigma), min_score, dropped
                )
                if scores[i] > dropped and (best[part] == NONE or scores[i] > scores[best[part]]):
                    best[part] = i


def soft_nms(boxes, scores, iou_threshold, method, sigma, min_score, limit, offset, dets, selected, found):
    """Kernel of soft_nms."""
    real = boxes.dtype.type
    dropped, growth = real(-np.inf), real(offset)
    left, areas = (empty((scores.size,), scores.dtype) for _ in range(2))
    parts = min(PARTS, scores.size)
    best = empty((parts,), np.dtype(np.int64))
    found.copy_to_device(np.zeros(1, np.int64))
    launch(load, parts, boxes, scores, dropped, growth, areas, left, best)
    options = (real(iou_threshold), method, real(sigma), real(min_score), dropped, growth)
    for step in range(limit):
        launch(take, 1, boxes, dropped, best, left, dets, selected, found)
        launch(lower_scores, parts, boxes, areas, step, *options, selected, found, left, best)
