# How a score is lowered by what its box shares with one that was taken before.
import cython

if not cython.compiled:
    from detops._codes import BoxIouMode, SoftNmsMethod
    from detops._core.box_iou import overlap
    from detops._core.scalar import exp, product, real, typed


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def overlap_or_none(shared: real, area_a: real, area_b: real) -> real:
    """Intersection over union from areas; 0 where one of them is 0."""
    return overlap(shared, area_a, area_b, area_a if area_a < area_b else area_b, BoxIouMode.IOU)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def soft_weight(overlap: real, method: cython.Py_ssize_t, iou_threshold: real, sigma: real) -> real:
    """What a score is multiplied with."""
    one: real = typed(1, overlap)
    if method == SoftNmsMethod.GAUSSIAN:
        squared: real = product(overlap, overlap)
        # A sigma that the type rounds to 0 leaves boxes that share nothing as they are.
        return exp(-squared / sigma) if squared > typed(0, squared) else one
    lowered: real = one - overlap if method == SoftNmsMethod.LINEAR else typed(0, overlap)
    return lowered if overlap >= iou_threshold else one


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def lowered_score(score: real, weight: real, min_score: real, dropped: real) -> real:
    """A score times its weight; what stands for a dropped box where that is below the least score, or NaN."""
    lowered: real = product(score, weight)
    return lowered if lowered >= min_score else dropped
