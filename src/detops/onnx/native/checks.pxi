# Checks of the families of operators, and their messages. A family is a file in families/: which shapes it
# takes and gives (plan), and how its kernel is called (compute). Its enums number its inputs and attributes; define.pxi
# lists their names in the same order. Checks of shapes are right while shapes are inferred, too, where a dimension may be
# unknown: then they look at the known ones alone.

cdef int64_t CAP = 1 << 61


cdef int wrong_shape(NodeCall* call, int slot, const char* wanted) noexcept nogil:
    """Say which shape an input should have, and which it has."""
    cdef const Tensor* tensor = &call.inputs[slot]
    cdef char[MESSAGE] shape
    cdef int i, used = 0
    shape[0] = 0
    for i in range(tensor.rank):
        if used < MESSAGE - 32:  # a shape of many axes is cut
            used += snprintf(shape + used, MESSAGE - used, ", %lld" if i else "%lld", <long long> tensor.shape[i])
    snprintf(call.message, MESSAGE, "%s: expected shape %s, got (%s%s)", input_name(call, slot), wanted, shape,
             "," if tensor.rank == 1 else "")
    return REFUSED


cdef int wrong_value(NodeCall* call, int slot, const char* wanted) noexcept nogil:
    """Say what an attribute should be, and what it is."""
    cdef const Value* value = &call.values[slot]
    cdef char[MESSAGE] got
    cdef int i, used = 0
    got[0] = 0
    for i in range(value.count):
        used += snprintf(got + used, MESSAGE - used, ", %lld" if i else "%lld", <long long> value.whole[i])
    snprintf(call.message, MESSAGE, "%s: expected %s, got %s", attribute_name(call, slot), wanted, got)
    return REFUSED


cdef int wrong_number(NodeCall* call, int slot, const char* wanted) noexcept nogil:
    snprintf(call.message, MESSAGE, "%s: expected %s, got %g", attribute_name(call, slot), wanted,
             call.values[slot].number[0])
    return REFUSED


cdef const char* input_name(const NodeCall* call, int slot) noexcept nogil:
    cdef int i
    for i in range(call.row.input_count):
        if call.row.inputs[i].slot == slot:
            return call.row.inputs[i].name
    return ""


cdef const char* attribute_name(const NodeCall* call, int slot) noexcept nogil:
    cdef int i
    for i in range(call.row.attribute_count):
        if call.row.attributes[i].slot == slot:
            return call.row.attributes[i].names[0]
    return ""


cdef bint known(const Tensor* tensor, int axis) noexcept nogil:
    """Whether a dimension is a number: always, but for shapes that are inferred."""
    return tensor.symbols[axis] == 0


cdef bint is_other(const Tensor* tensor, int axis, int64_t length) noexcept nogil:
    """Whether a dimension is known to be another number."""
    return known(tensor, axis) and tensor.shape[axis] != length


cdef bint differ(const Tensor* one, int axis, const Tensor* other, int other_axis) noexcept nogil:
    """Whether two dimensions are known to differ."""
    return known(one, axis) and is_other(other, other_axis, one.shape[axis])


cdef void take(NodeCall* call, int output, int axis, const Tensor* source, int source_axis) noexcept nogil:
    """Plan a dimension that is one of an input's, whatever its number is."""
    call.outputs[output].shape[axis] = source.shape[source_axis]
    call.outputs[output].symbols[axis] = source.symbols[source_axis]


cdef void settle(NodeCall* call, int output, int axis, int64_t length, bint from_known) noexcept nogil:
    """Plan a dimension that is computed. Of unknown dimensions it is open: stand-ins prove nothing about other numbers."""
    call.outputs[output].shape[axis] = length
    call.outputs[output].symbols[axis] = 0 if from_known else OPEN


cdef void copy_shape(NodeCall* call, int slot, int output) noexcept nogil:
    """Plan a result of an input's shape."""
    cdef int i
    call.outputs[output].rank = call.inputs[slot].rank
    for i in range(call.inputs[slot].rank):
        take(call, output, i, &call.inputs[slot], i)


cdef int64_t capped_sum(int64_t one, int64_t other) noexcept nogil:
    """A sum of numbers of at least 0 capped at 2^61: a size so large is wrong, whatever it is."""
    return min(min(one, CAP) + min(other, CAP), CAP)


cdef int64_t capped_product(int64_t one, int64_t other) noexcept nogil:
    """The same of a product."""
    return CAP if other > 0 and one > CAP // other else one * other


cdef double element_at(const Tensor* tensor, Py_ssize_t index) noexcept nogil:
    """An element of a tensor of floats as its node gives it."""
    if tensor.type == TYPE_DOUBLE:
        return (<const double*> tensor.memory)[index]
    if tensor.type == TYPE_FLOAT:
        return (<const float*> tensor.memory)[index]
    return from_half((<const half_t*> tensor.memory)[index])
