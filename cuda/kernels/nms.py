"""Non-maximum suppression: of one set of boxes, of boxes with labels, and of every class of every batch.

Candidates are put in order on the host: segment after segment (a class of a batch, or a label), by falling score.
On the GPU a segment is worked off in chunks, all segments side by side. Within a chunk a bit for each pair says whether
the first box would suppress the second, found for all pairs at once; one thread per segment follows these bits, and
then all later candidates are compared with the boxes that the chunk has kept. Memory grows with the number of
candidates alone.
"""

import numpy as np
from numba.extending import register_jitable

from detops._codes import BoxForm
from detops._core.iou import area_of_sides, box_side, is_candidate, overlap_ratio, shared_area, side_length
from detops._cuda.device import SIMULATED, cuda, empty, jit, launch, to_device

# Candidates of a chunk are the bits of its words. The simulator shows the same mistakes with small chunks.
BITS, WORDS = (4, 2) if SIMULATED else (32, 16)
CHUNK = BITS * WORDS
CORNERS = BoxForm.CORNERS.value


@jit
def load_boxes(boxes, rows, form, offset, loaded):
    """Corners and area of each candidate."""
    for i in range(cuda.grid(1), rows.size, cuda.gridsize(1)):
        row = rows[i]
        x1, x2 = box_side(boxes[row, 0], boxes[row, 2], form)
        y1, y2 = box_side(boxes[row, 1], boxes[row, 3], form)
        loaded[0, i], loaded[1, i], loaded[2, i], loaded[3, i] = x1, y1, x2, y2
        loaded[4, i] = area_of_sides(side_length(x1, x2, offset), side_length(y1, y2, offset))


@register_jitable
def suppresses(loaded, i, j, threshold, offset):
    """Whether two candidates overlap too much."""
    if loaded[4, i] == 0 or loaded[4, j] == 0:
        return False
    shared = shared_area(
        loaded[0, i],
        loaded[1, i],
        loaded[2, i],
        loaded[3, i],
        loaded[0, j],
        loaded[1, j],
        loaded[2, j],
        loaded[3, j],
        offset,
    )
    return overlap_ratio(shared, loaded[4, i], loaded[4, j]) > threshold


def comparing(suppresses):
    """Return what kernels do for an item, where ``suppresses(loaded, i, j, threshold, offset)`` compares candidates."""

    @register_jitable
    def find_bits(item, loaded, segments, starts, threshold, offset, bits):
        """One item is a candidate and a word of its chunk: a bit for each later candidate that it would suppress."""
        i, word = item // WORDS, item % WORDS
        start, end = starts[segments[i]], starts[segments[i] + 1]
        first = start + (i - start) // CHUNK * CHUNK + word * BITS
        found = 0
        for bit in range(BITS):
            j = first + bit
            if i < j < end and suppresses(loaded, i, j, threshold, offset):
                found |= 1 << bit
        bits[i, word] = found

    @register_jitable
    def drop(i, chunk, loaded, segments, starts, threshold, offset, alive):
        """One item is one candidate: it is dropped where a candidate that the chunk has kept suppresses it."""
        first = starts[segments[i]] + chunk * CHUNK
        if i < first + CHUNK:
            return
        for j in range(first, first + CHUNK):
            if alive[i] and alive[j] and suppresses(loaded, j, i, threshold, offset):
                alive[i] = 0

    return find_bits, drop


find_bits, drop = comparing(suppresses)


@jit
def compare_within_chunks(loaded, segments, starts, threshold, offset, bits):
    """One item is a candidate and a word of its chunk."""
    for item in range(cuda.grid(1), bits.size, cuda.gridsize(1)):
        find_bits(item, loaded, segments, starts, threshold, offset, bits)


@jit
def drop_later(chunk, loaded, segments, starts, threshold, offset, alive):
    """One item is one candidate."""
    for i in range(cuda.grid(1), segments.size, cuda.gridsize(1)):
        drop(i, chunk, loaded, segments, starts, threshold, offset, alive)


@jit
def keep_in_chunk(chunk, starts, bits, limit, alive, counts):
    """One item is one segment: go through a chunk in order and drop what a kept candidate suppresses."""
    for segment in range(cuda.grid(1), counts.size, cuda.gridsize(1)):
        first = starts[segment] + chunk * CHUNK
        last = starts[segment + 1]
        for i in range(first, first + CHUNK if first + CHUNK < last else last):
            if counts[segment] == limit:
                alive[i] = 0
            if alive[i] == 0:
                continue
            counts[segment] += 1
            for word in range(WORDS):
                for bit in range(BITS):
                    if bits[i, word] >> bit & 1:
                        alive[first + word * BITS + bit] = 0


@jit
def write_rows(selected, found, before, rows):
    """One item is one row: (batch, class, box), or -1 after the last."""
    classes = found.shape[1]
    for row in range(cuda.grid(1), rows.shape[0], cuda.gridsize(1)):
        low, high = 0, before.size - 1
        while low < high:
            middle = (low + high) // 2
            if before[middle + 1] > row:
                high = middle
            else:
                low = middle + 1
        b, c = low // classes, low % classes
        inside = low < before.size - 1
        rows[row, 0] = b if inside else -1
        rows[row, 1] = c if inside else -1
        rows[row, 2] = selected[b, c, row - before[low]] if inside else -1


def survivors(boxes, rows, segments, threshold, limit, form, offset):
    """Which of the candidates are kept, as a host array of bools. They come in order, with the rows of their boxes."""
    if rows.size == 0:
        return np.zeros(0, bool)
    real = boxes.dtype.type

    def load(rows):
        loaded = empty((5, rows.size), boxes.dtype)
        launch(load_boxes, rows.size, boxes, rows, form, real(offset), loaded)
        return loaded

    return worked_off(rows, segments, limit, load, compare_within_chunks, drop_later, real(threshold), real(offset))


def worked_off(rows, segments, limit, load, within, later, *rule):
    """Which candidates are kept, chunk after chunk; the kernels within and later compare those that were loaded."""
    starts = np.searchsorted(segments, np.arange(segments[-1] + 2))
    chunks = -(-int(np.diff(starts).max()) // CHUNK)
    rows, segments, starts = map(to_device, (rows, segments, starts))
    loaded = load(rows)
    bits = empty((rows.size, WORDS), np.uint32)
    alive = to_device(np.ones(rows.size, np.uint8))
    counts = to_device(np.zeros(starts.size - 1, np.int64))
    launch(within, bits.size, loaded, segments, starts, *rule, bits)
    for chunk in range(chunks):
        launch(keep_in_chunk, counts.size, chunk, starts, bits, limit, alive, counts)
        if chunk + 1 < chunks:
            launch(later, rows.size, chunk, loaded, segments, starts, *rule, alive)
    return alive.copy_to_host().astype(bool)


def leading(segments, top_k):
    """Which candidates, in order of segment, are among the first top_k of theirs."""
    return np.arange(segments.size) - np.searchsorted(segments, segments) < top_k


def nms(
    boxes, scores, labels, thresholds, iou_threshold, score_threshold, strict, top_k, limit, offset, selected, found
):
    """Kernel of nms and batched_nms."""
    real = boxes.dtype.type
    labels = None if labels is None else labels.copy_to_host()
    threshold = real(score_threshold) if thresholds is None else thresholds.copy_to_host()[labels]

    def chosen(rows, segments):
        return survivors(boxes, rows, segments, iou_threshold, limit, CORNERS, offset)

    select(scores.copy_to_host(), labels, threshold, strict, top_k, limit, chosen, selected, found)


def select(scores, labels, threshold, strict, top_k, limit, chosen, selected, found):
    """Put the candidates in order, label after label; of those chosen write the rows by falling score."""
    order = np.argsort(-scores, kind="stable")
    order = order[is_candidate(scores, threshold, strict)[order]]
    segments = np.zeros(order.size, np.int64) if labels is None else np.unique(labels[order], return_inverse=True)[1]
    by_segment = np.argsort(segments, kind="stable")
    by_segment = by_segment[leading(segments[by_segment], top_k)]
    kept = np.zeros(order.size, bool)
    if by_segment.size:
        kept[by_segment] = chosen(order[by_segment], segments[by_segment])
    result = order[kept][:limit]
    found.copy_to_device(np.array([result.size]))
    if result.size:
        selected[: result.size].copy_to_device(result)


def non_max_suppression(
    boxes, scores, thresholds, iou_threshold, score_threshold, strict, top_k, form, offset, selected, found
):
    """Kernel of non_max_suppression and non_max_suppression_padded."""
    real = boxes.dtype.type
    classes, count = scores.shape[1:]
    limit = selected.shape[2]
    threshold = real(score_threshold) if thresholds is None else thresholds.copy_to_host()[:, np.newaxis]
    scores = scores.copy_to_host()
    passes = is_candidate(scores, threshold, strict)
    scores, passes = (array.reshape(-1, count) for array in (scores, passes))
    segments, candidates = np.nonzero(passes)
    order = np.lexsort((-scores[segments, candidates], segments))
    order = order[leading(segments[order], top_k)]
    segments, candidates = segments[order], candidates[order]
    flat = boxes.reshape((boxes.size // 4, 4))
    rows = segments // classes * count + candidates
    kept = survivors(flat, rows, segments, iou_threshold, limit, form, offset)
    segments, candidates = segments[kept], candidates[kept]
    counts = np.bincount(segments, minlength=len(scores))
    result = np.zeros((len(scores), limit), np.int64)
    result[segments, np.arange(segments.size) - (np.cumsum(counts) - counts)[segments]] = candidates
    found.copy_to_device(counts.reshape(found.shape))
    selected.copy_to_device(result.reshape(selected.shape))


def best_of_classes(scores, selected, total, found):
    """Kernel of max_output_boxes_total."""
    scores, selected, counts = (array.copy_to_host() for array in (scores, selected, found))
    batches, classes, places = np.nonzero(np.arange(selected.shape[2]) < counts[..., np.newaxis])
    best = scores[batches, classes, selected[batches, classes, places]]
    order = np.lexsort((-best, batches))
    order = order[leading(batches[order], total)]
    counts[...] = 0
    np.add.at(counts, (batches[order], classes[order]), 1)
    found.copy_to_device(counts)


def selected_rows(selected, found, rows):
    """Kernel that turns what was selected into rows."""
    before = np.concatenate([[0], np.cumsum(found.copy_to_host())])
    launch(write_rows, rows.shape[0], selected, found, to_device(before), rows)
