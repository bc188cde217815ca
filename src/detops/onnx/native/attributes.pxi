# Reading a node's attributes into values by slot, from a kernel's information or while shapes are inferred.
from libc.stdio cimport snprintf

cdef enum:
    MESSAGE = 512
    MAX_TEXT = 64

cdef struct Source:
    Api api
    const void* info  # OrtKernelInfo, or
    const void* inference  # OrtShapeInferContext


cdef Status read_inferring(
    const Source* source, const char* name, int kind, void* found, size_t room, size_t* used
) noexcept nogil:
    cdef void* attribute = NULL
    cdef Status status = (<get_named_t> source.api[SHAPE_INFER_CONTEXT_GET_ATTRIBUTE])(source.inference, name, &attribute)
    if status is not NULL or attribute is NULL:
        return status
    return (<read_attribute_t> source.api[READ_OP_ATTR])(attribute, kind, found, room, used)


cdef Status read_raw(const Source* source, const char* name, int kind, void* found, size_t room, size_t* used) noexcept nogil:
    """Read an attribute into `room` bytes; `used` says how many it takes, 0 where it is absent."""
    cdef Api api = source.api
    cdef size_t width = 4 if kind in (ATTRIBUTE_FLOAT, ATTRIBUTE_FLOATS) else 8
    cdef size_t count = 0
    cdef Status status
    used[0] = 0
    if source.info is NULL:
        return read_inferring(source, name, kind, found, room, used)
    if kind == ATTRIBUTE_INT:
        status = (<get_int_t> api[KERNEL_INFO_GET_ATTRIBUTE_INT64])(source.info, name, <int64_t*> found)
        used[0] = width
        return status
    if kind == ATTRIBUTE_FLOAT:
        status = (<get_float_t> api[KERNEL_INFO_GET_ATTRIBUTE_FLOAT])(source.info, name, <float*> found)
        used[0] = width
        return status
    cdef int function = KERNEL_INFO_GET_ATTRIBUTE_STRING
    if kind == ATTRIBUTE_INTS:
        function = KERNEL_INFO_GET_ATTRIBUTE_ARRAY_INT64
    elif kind == ATTRIBUTE_FLOATS:
        function = KERNEL_INFO_GET_ATTRIBUTE_ARRAY_FLOAT
    else:
        width = 1
    status = (<get_list_t> api[function])(source.info, name, NULL, &count)
    if status is not NULL:
        return status
    if count == 0 and kind != ATTRIBUTE_STRING:  # what an attribute of another kind looks like, too
        return make_status(api, ORT_INVALID_ARGUMENT, "expected a list of numbers")
    used[0] = count * width
    if count == 0 or used[0] > room:
        return NULL
    return (<get_list_t> api[function])(source.info, name, found, &count)


cdef bint is_absent(Api api, Status status) noexcept nogil:
    cdef const char* text = status_text(api, status)
    return strstr(text, "No attribute") is not NULL or strstr(text, "does not exist") is not NULL


cdef int choose_word(const Attribute* wanted, Value* value, const char* text) noexcept nogil:
    """Replace what the node holds by the number that the kernel knows it by."""
    cdef const Word* word
    cdef int i
    for i in range(wanted.word_count):
        word = &wanted.words[i]
        if (strcmp(word.text, text) == 0) if wanted.kind == ATTRIBUTE_STRING else (
                word.number == (value.number[0] if wanted.kind == ATTRIBUTE_FLOAT else <double> value.whole[0])):
            value.count = 1
            value.number[0] = word.code
            value.whole[0] = 0 if wanted.kind == ATTRIBUTE_FLOAT else <int64_t> word.code
            return 0
    return 0 if wanted.kind == ATTRIBUTE_FLOAT else -1


cdef int store(const Attribute* wanted, Value* value, const void* raw, size_t used) noexcept nogil:
    """Turn what was read into a value; -1 for a word that is none of those allowed."""
    cdef char[MAX_TEXT + 1] text
    cdef int i
    text[0] = 0
    if wanted.kind == ATTRIBUTE_STRING:
        memcpy(text, raw, used)
        text[used] = 0
    elif wanted.kind in (ATTRIBUTE_FLOAT, ATTRIBUTE_FLOATS):
        value.count = <int> (used // sizeof(float))
        for i in range(value.count):
            value.number[i] = (<const float*> raw)[i]
    else:
        value.count = <int> (used // sizeof(int64_t))
        for i in range(value.count):
            value.whole[i] = (<const int64_t*> raw)[wanted.order[i] if value.count == wanted.order_count else i]
    return choose_word(wanted, value, text) if wanted.word_count else 0


cdef Status read_attribute(const Source* source, const Row* row, const Attribute* wanted, Value* value) noexcept nogil:
    """Read an attribute, whichever of its names the node uses; the message of an error names operator and attribute."""
    cdef int64_t[MAX_NUMBERS + 1] raw  # also room for a text
    cdef size_t room = MAX_TEXT if wanted.kind == ATTRIBUTE_STRING else MAX_NUMBERS * sizeof(int64_t)
    cdef char[MESSAGE] message
    cdef const char* problem = NULL
    cdef Status status
    cdef size_t used = 0
    cdef int i
    for i in range(wanted.name_count):
        status = read_raw(source, wanted.names[i], wanted.kind, raw, room, &used)
        if status is not NULL and not is_absent(source.api, status):
            snprintf(message, MESSAGE, "%s: attribute %s: %s", row.title, wanted.names[i], status_text(source.api, status))
            release_status(source.api, status)
            return make_status(source.api, ORT_INVALID_ARGUMENT, message)
        if status is NULL and 0 < used <= room:
            if store(wanted, value, raw, used):
                problem = "got a value that the operator does not know"
            break
        if status is NULL and used > room:
            problem = "got a value that is too long"
            break
        release_status(source.api, status)
    else:
        if not wanted.required:
            value[0] = wanted.fallback
            return NULL
        problem = "expected a value, got none"
    if problem is NULL:
        return NULL
    snprintf(message, MESSAGE, "%s: attribute %s: %s", row.title, wanted.names[0], problem)
    return make_status(source.api, ORT_INVALID_ARGUMENT, message)


cdef Status read_attributes(const Source* source, const Row* row, Value* values) noexcept nogil:
    """Fill values by slot: what the operator settles itself, and what the node says."""
    cdef Status status
    cdef int i
    memcpy(values, row.fixed, MAX_ATTRIBUTES * sizeof(Value))
    for i in range(row.attribute_count):
        status = read_attribute(source, row, &row.attributes[i], &values[row.attributes[i].slot])
        if status is not NULL:
            return status
    return NULL
