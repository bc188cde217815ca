cdef struct Nms:
    const real* boxes
    const real* scores
    # NULL where all boxes belong together.
    const long long* labels
    # A score threshold for each label, which has to be passed as well; or NULL.
    const real* score_thresholds
    long long* selected
    Py_ssize_t count
    # Boxes of highest score that take part: of each label, where there are any.
    Py_ssize_t top_k
    Py_ssize_t limit
    double iou_threshold
    double score_threshold
    # Whether a score has to be above its threshold, or may be equal to it.
    bint strict
    double offset
    # Which way angles turn, where boxes have one.
    bint clockwise
    # Written by the operator: how many boxes were selected.
    long long* found

cdef struct NonMaxSuppression:
    # boxes (batches, count, 4), scores (batches, classes, count), selected (batches, classes, limit), of which
    # found (batches, classes) says how many are written.
    const real* boxes
    const real* scores
    # A score threshold for each class, in place of the one for all; or NULL.
    const real* score_thresholds
    long long* selected
    long long* found
    Py_ssize_t batches
    Py_ssize_t classes
    Py_ssize_t count
    Py_ssize_t top_k
    Py_ssize_t limit
    double iou_threshold
    double score_threshold
    bint strict
    # A BoxForm.
    Py_ssize_t form
    double offset

cdef struct BestOfClasses:
    # Lowers what NonMaxSuppression has found to the total of highest score in each batch. As the boxes of a class lie by
    # falling score, each class keeps its first ones.
    const real* scores
    const long long* selected
    long long* found
    Py_ssize_t batches
    Py_ssize_t classes
    Py_ssize_t count
    Py_ssize_t limit
    Py_ssize_t total

cdef struct SelectedRows:
    # The boxes that NonMaxSuppression has found, as rows (batch, class, box): one of the two is NULL.
    const long long* selected
    const long long* found
    Py_ssize_t batches
    Py_ssize_t classes
    Py_ssize_t limit
    Py_ssize_t rows
    long long* rows64
    int* rows32
