"""Non-maximum suppression: of one set of boxes, of boxes with labels, and of every class of every batch."""

import numpy as np

from detops._codes import BoxForm
from detops._core.iou import area_of_sides, box_side, is_candidate, overlap_ratio, shared_area, side_length
from detops._numba.parallel import ZERO, inner, jit, parallel_for, read_only

# Kept boxes that are compared at once, in vector registers, before the first hit is looked for.
LANES = 64
CORNERS = BoxForm.CORNERS.value
# Indices that are sorted by insertion, before runs of them are merged.
RUN = 16


@inner
def sort_run(keys, order, start, end):
    """Sort a short run of indices by falling key."""
    for at in range(start + 1, end):
        index = order[at]
        key = keys[index]
        place = at
        while place > start and keys[order[place - 1]] < key:
            order[place] = order[place - 1]
            place -= 1
        order[place] = index


@inner
def merge(keys, order, start, middle, end, merged):
    """Merge two runs of indices, each by falling key; on a tie the index of the first run comes first."""
    left, right = start, middle
    for at in range(start, end):
        if right >= end or (left < middle and keys[order[left]] >= keys[order[right]]):
            merged[at] = order[left]
            left += 1
        else:
            merged[at] = order[right]
            right += 1


@inner
def by_falling_key(keys, order):
    """Indices by falling key, those of equal keys as they stand. Numba's own sort takes a second to compile."""
    run = RUN
    for start in range(0, order.size, run):
        sort_run(keys, order, start, min(start + run, order.size))
    merged = np.empty(order.size, np.int64) if run < order.size else order
    while run < order.size:
        for start in range(0, order.size, 2 * run):
            merge(keys, order, start, min(start + run, order.size), min(start + 2 * run, order.size), merged)
        order, merged = merged, order
        run *= 2
    return order


@jit
def in_order(scores, threshold, strict):
    """Indices of the scores that take part, by falling score, on a tie by index; 0.0 and -0.0 are a tie."""
    candidates = np.empty(scores.size, np.int64)
    count = 0
    for i in range(scores.size):
        if is_candidate(scores[i], threshold, strict):
            candidates[count] = i
            count += 1
    return by_falling_key(scores, candidates[:count])


@jit
def drop_below(order, scores, labels, thresholds, strict):
    """The boxes of order that pass the threshold of their label, moved to its head."""
    left = 0
    for box in order:
        if is_candidate(scores[box], thresholds[labels[box]], strict):
            order[left] = box
            left += 1
    return order[:left]


@inner
def suppressed(x1, y1, x2, y2, area, kept, count, threshold, offset):
    """Whether one of the first boxes of kept, whose unused columns overlap nothing, overlaps a box too much."""
    for start in range(0, count, LANES):
        hits = 0
        for i in range(start, start + LANES):
            shared = shared_area(x1, y1, x2, y2, kept[0, i], kept[1, i], kept[2, i], kept[3, i], offset)
            hits += overlap_ratio(shared, area, kept[4, i]) > threshold
        if hits:
            return True
    return False


@jit
def select(order, boxes, threshold, limit, form, offset):
    """Move the boxes that are kept to the head of order; return how many."""
    kept = np.empty((5, min(limit, order.size) + LANES), boxes.dtype)
    for i in range(kept.shape[1]):
        # A box that begins at infinity overlaps nothing, whatever the offset.
        kept[0, i] = np.inf
        kept[1, i] = kept[2, i] = kept[3, i] = kept[4, i] = 0
    compared = ZERO
    selected = 0
    for at in range(order.size):
        if selected == limit:
            break
        box = order[at]
        x1, x2 = box_side(boxes[box, 0], boxes[box, 2], form)
        y1, y2 = box_side(boxes[box, 1], boxes[box, 3], form)
        area = area_of_sides(side_length(x1, x2, offset), side_length(y1, y2, offset))
        if area > 0:
            if suppressed(x1, y1, x2, y2, area, kept, compared, threshold, offset):
                continue
            kept[0, compared], kept[1, compared], kept[2, compared], kept[3, compared] = x1, y1, x2, y2
            kept[4, compared] = area
            compared += 1
        order[selected] = box
        selected += 1
    return selected


@jit
def select_labeled(order, boxes, labels, threshold, top_k, limit, offset):
    """As select among the first top_k of each label; boxes of different labels leave each other alone."""
    by_label = by_falling_key(labels, order.copy())
    kept = np.empty(labels.size, np.int64)
    for box in order:
        kept[box] = 0
    start = 0
    for end in range(1, by_label.size + 1):
        if end == by_label.size or labels[by_label[end]] != labels[by_label[start]]:
            group = by_label[start : min(end, start + top_k)]
            for box in group[: select(group, boxes, threshold, limit, CORNERS, offset)]:
                kept[box] = 1
            start = end
    selected = 0
    for box in order:
        if kept[box] == 1 and selected < limit:
            order[selected] = box
            selected += 1
    return selected


@jit
def select_classes(begin, end, boxes, scores, thresholds, iou_threshold, strict, top_k, form, offset, selected, found):
    """One item is one class of one batch."""
    classes = scores.shape[1]
    for item in range(begin, end):
        b, c = item // classes, item % classes
        order = in_order(scores[b, c], thresholds[c], strict)[:top_k]
        count = select(order, boxes[b], iou_threshold, selected.shape[2], form, offset)
        for i in range(count):
            selected[b, c, i] = order[i]
        found[b, c] = count


@jit
def limit_batches(begin, end, scores, selected, total, found):
    """One item is one batch: of what was found there, the total of highest score stays.

    As the boxes of a class lie by falling score, each class keeps its first ones.
    """
    for b in range(begin, end):
        room = 0
        for count in found[b]:
            room += count
        if room <= total:
            continue
        best, classes = np.empty(room, scores.dtype), np.empty(room, np.int64)
        at = 0
        for c in range(selected.shape[1]):
            for i in range(found[b, c]):
                best[at], classes[at] = scores[b, c, selected[b, c, i]], c
                at += 1
            found[b, c] = 0
        for i in in_order(best, scores.dtype.type(-np.inf), False)[:total]:
            found[b, classes[i]] += 1


@jit
def selected_rows(selected, found, rows):
    """Kernel that turns what was selected into rows (batch, class, box), then rows of -1."""
    rows[:] = -1
    at = 0
    for b in range(selected.shape[0]):
        for c in range(selected.shape[1]):
            for i in range(found[b, c]):
                rows[at, 0], rows[at, 1], rows[at, 2] = b, c, selected[b, c, i]
                at += 1


def nms(
    boxes, scores, labels, thresholds, iou_threshold, score_threshold, strict, top_k, limit, offset, selected, found
):
    """Kernel of nms and batched_nms."""
    real = boxes.dtype.type
    boxes, scores, labels = map(read_only, (boxes, scores, labels))
    order = in_order(scores, real(score_threshold), strict)
    if thresholds is not None:
        order = drop_below(order, scores, labels, read_only(thresholds), strict)
    if labels is None:
        found[0] = select(order[:top_k], boxes, real(iou_threshold), limit, CORNERS, real(offset))
    else:
        found[0] = select_labeled(order, boxes, labels, real(iou_threshold), top_k, limit, real(offset))
    selected[: found[0]] = order[: found[0]]


def non_max_suppression(
    boxes, scores, thresholds, iou_threshold, score_threshold, strict, top_k, form, offset, selected, found
):
    """Kernel of non_max_suppression and non_max_suppression_padded."""
    real = boxes.dtype.type
    if thresholds is None:
        thresholds = np.full(scores.shape[1], score_threshold, scores.dtype)
    reads = (boxes, scores, thresholds, real(iou_threshold), strict, top_k, form, real(offset))
    parallel_for(select_classes, found.size, 1 + 8192 // scores.shape[2], reads, selected, found)


def best_of_classes(scores, selected, total, found):
    """Kernel of max_output_boxes_total."""
    parallel_for(limit_batches, len(found), 1 + 8192 // selected[0].size, (scores, selected, total), found)
