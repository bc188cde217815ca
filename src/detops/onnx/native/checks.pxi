# What the families of operators check, and how they word what is wrong. A family is a file in families/: which shapes it
# takes and gives (plan), and how its kernel is called (compute). Its enums number its inputs and attributes; define.pxi
# lists their names in the same order.


cdef int wrong_shape(Call* call, int slot, const char* wanted) noexcept nogil:
    """Say which shape an input should have, and which it has."""
    cdef const Tensor* tensor = &call.inputs[slot]
    cdef char[MESSAGE] shape
    cdef int i, used = 0
    shape[0] = 0
    for i in range(tensor.rank):
        used += snprintf(shape + used, MESSAGE - used, ", %lld" if i else "%lld", <long long> tensor.shape[i])
    snprintf(call.message, MESSAGE, "%s: expected shape %s, got (%s%s)", input_name(call, slot), wanted, shape,
             "," if tensor.rank == 1 else "")
    return REFUSED


cdef int wrong_value(Call* call, int slot, const char* wanted) noexcept nogil:
    """Say what an attribute should be, and what it is."""
    cdef const Value* value = &call.values[slot]
    cdef char[MESSAGE] got
    cdef int i, used = 0
    got[0] = 0
    for i in range(value.count):
        used += snprintf(got + used, MESSAGE - used, ", %lld" if i else "%lld", <long long> value.whole[i])
    snprintf(call.message, MESSAGE, "%s: expected %s, got %s", attribute_name(call, slot), wanted, got)
    return REFUSED


cdef int wrong_number(Call* call, int slot, const char* wanted) noexcept nogil:
    snprintf(call.message, MESSAGE, "%s: expected %s, got %g", attribute_name(call, slot), wanted,
             call.values[slot].number[0])
    return REFUSED


cdef const char* input_name(const Call* call, int slot) noexcept nogil:
    cdef int i
    for i in range(call.row.input_count):
        if call.row.inputs[i].slot == slot:
            return call.row.inputs[i].name
    return ""


cdef const char* attribute_name(const Call* call, int slot) noexcept nogil:
    cdef int i
    for i in range(call.row.attribute_count):
        if call.row.attributes[i].slot == slot:
            return call.row.attributes[i].names[0]
    return ""


cdef void copy_shape(Call* call, int slot, int output) noexcept nogil:
    """Plan a result of an input's shape."""
    call.outputs[output].rank = call.inputs[slot].rank
    memcpy(call.outputs[output].shape, call.inputs[slot].shape, sizeof(call.outputs[output].shape))


cdef bint same_shape(const Tensor* one, const Tensor* other) noexcept nogil:
    cdef int i
    if one.rank != other.rank:
        return False
    for i in range(one.rank):
        if one.shape[i] != other.shape[i]:
            return False
    return True


cdef double element_at(const Call* call, const Tensor* tensor, Py_ssize_t index) noexcept nogil:
    """An element of a tensor of the node's type, as its kernel sees it."""
    if call.kernel.type == TYPE_DOUBLE:
        return (<const double*> tensor.data)[index]
    return (<const float*> tensor.data)[index]
