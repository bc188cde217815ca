# Shapes of results while a model is loaded, from the same plans that the kernels follow. A dimension that is only
# known by name gets a stand-in number, twice: what comes out as the same number both times is a constant, what follows
# one stand-in has its name, and where anything else comes out the shape stays open.

cdef enum:
    MAX_SYMBOLS = 24

cdef struct Symbols:
    const char* names[MAX_SYMBOLS]
    int count
    int trial
    int type  # of the node


cdef int64_t stand_in(const Symbols* symbols, int index) noexcept nogil:
    # The first trial is small, the second large, so that a min() with a constant does not look like a constant.
    return 2 + index if symbols.trial == 0 else 10007 + 101 * index


cdef int64_t named(Symbols* symbols, const char* name) noexcept nogil:
    """The stand-in of a name, -1 where there are too many."""
    cdef int i
    for i in range(symbols.count):
        if strcmp(symbols.names[i], name) == 0:
            return stand_in(symbols, i)
    if symbols.count == MAX_SYMBOLS:
        return -1
    symbols.names[symbols.count] = name
    symbols.count += 1
    return stand_in(symbols, symbols.count - 1)


cdef const char* name_of(const Symbols* symbols, int64_t number, int64_t small) noexcept nogil:
    """The name whose stand-ins these were in both trials, or NULL."""
    cdef int i
    for i in range(symbols.count):
        if small == 2 + i and number == 10007 + 101 * i:
            return symbols.names[i]
    return NULL


cdef int infer_input(Call* call, Symbols* symbols, const Input* declared, size_t index) noexcept nogil:
    """Fill an input's shape; -1 where it is not known well enough."""
    cdef Tensor* tensor = &call.inputs[declared.slot]
    cdef const char* names[MAX_RANK]
    cdef void* info = NULL
    cdef int i
    call.status = (<get_indexed_t> call.api[SHAPE_INFER_CONTEXT_GET_INPUT_TYPE_SHAPE])(call.context, index, &info)
    if call.status is not NULL or read_shape(call, info, tensor, declared.name):
        return -1
    tensor.present = True
    tensor.data = NULL
    if declared.type == 0:
        call.status = (<get_type_t> call.api[GET_TENSOR_ELEMENT_TYPE])(info, &symbols.type)
        if call.status is not NULL:
            return -1
    call.status = (<get_symbols_t> call.api[GET_SYMBOLIC_DIMENSIONS])(info, names, tensor.rank)
    if call.status is not NULL:
        return -1
    for i in range(tensor.rank):
        if names[i] is not NULL and names[i][0]:
            tensor.shape[i] = named(symbols, names[i])
        if tensor.shape[i] < 0:
            return -1
    count_elements(tensor)
    # An input of unknown rank looks like a scalar, and every input of the operators that infer has axes.
    return 0 if tensor.rank else -1


cdef int infer_inputs(Call* call, Symbols* symbols) noexcept nogil:
    cdef size_t count = 0
    cdef int i
    call.status = (<get_size_t> call.api[SHAPE_INFER_CONTEXT_GET_INPUT_COUNT])(call.context, &count)
    if call.status is not NULL:
        return -1
    for i in range(MAX_INPUTS):
        call.inputs[i].present = False
    for i in range(call.row.input_count):
        if <size_t> i < count and infer_input(call, symbols, &call.row.inputs[i], i):
            return -1
    return 0


cdef int trial(Call* call, Symbols* symbols, int which) noexcept nogil:
    """Plan with one set of stand-ins: 0, REFUSED or, where shapes are not known well enough, UNKNOWN."""
    symbols.count = 0
    symbols.trial = which
    call.message[0] = 0
    return UNKNOWN if infer_inputs(call, symbols) else call.row.plan(call)


cdef Status set_shape(Call* call, int index, const Tensor* small, const Symbols* symbols) noexcept nogil:
    """Tell ONNX Runtime the shape of a result that both trials have planned, if nothing in it stays open."""
    cdef Tensor* tensor = &call.outputs[index]
    cdef const char* names[MAX_RANK]
    cdef Api api = call.api
    cdef void* info = NULL
    cdef Status status
    cdef int i
    for i in range(tensor.rank):
        names[i] = ""
        if tensor.shape[i] != small.shape[i]:
            names[i] = name_of(symbols, tensor.shape[i], small.shape[i])
            if names[i] is NULL:
                return NULL
            tensor.shape[i] = -1
    status = (<create_info_t> api[CREATE_TENSOR_TYPE_AND_SHAPE_INFO])(&info)
    if status is NULL:
        status = (<set_type_t> api[SET_TENSOR_ELEMENT_TYPE])(info, call.row.outputs[index].type or symbols.type)
    if status is NULL:
        status = (<set_dimensions_t> api[SET_DIMENSIONS])(info, tensor.shape, tensor.rank)
    if status is NULL:
        status = (<set_symbols_t> api[SHAPE_INFER_CONTEXT_SET_SYMBOLIC_DIMENSIONS])(info, names, tensor.rank)
    if status is NULL:
        status = (<set_indexed_t> api[SHAPE_INFER_CONTEXT_SET_OUTPUT_TYPE_SHAPE])(call.context, index, info)
    (<release_t> api[RELEASE_TENSOR_TYPE_AND_SHAPE_INFO])(info)
    return status


cdef Status infer_output_shape(const CustomOp* op, void* context) noexcept nogil:
    cdef Tensor[MAX_OUTPUTS] small
    cdef Value[MAX_ATTRIBUTES] values
    cdef Symbols symbols
    cdef Source source
    cdef Call call
    cdef Status status
    cdef int i, found
    call.row = (<const Op*> op).row
    call.api = source.api = (<const Op*> op).api
    call.context = context
    call.kernel = NULL
    call.values = values
    call.status = NULL
    source.info = NULL
    source.inference = context
    status = read_attributes(&source, call.row, values)
    if status is not NULL:
        return status
    found = trial(&call, &symbols, 0)
    if found == 0:
        memcpy(small, call.outputs, sizeof(small))
        found = trial(&call, &symbols, 1)
    if found == REFUSED and symbols.count == 0:
        return outcome(&call)
    if found:
        # Refused for a stand-in, or unknown: what is wrong shows when the kernel runs.
        release_status(call.api, call.status)
        return NULL
    for i in range(call.row.output_count):
        status = set_shape(&call, i, &small[i], &symbols)
        if status is not NULL:
            return status
    return NULL
