# Shapes of results while a model is loaded, from the same plans that the kernels follow. A dimension that is no number yet
# has a stand-in for checks that need one, and a symbol that says so: a result's dimension is a number, has the name of an
# input's dimension, or is open. Nothing is tried out: what holds of two numbers proves nothing about a third.

cdef enum:
    MAX_SYMBOLS = 100
    STAND_IN = 1009

cdef struct Symbols:
    const char* names[MAX_SYMBOLS]
    int count
    int type  # of the first input


cdef int symbol_of(Symbols* symbols, const char* name) noexcept nogil:
    """The symbol of a name; a dimension without one has a symbol of its own, and those that are too many are OPEN."""
    cdef int i
    if name is NULL:
        name = ""
    for i in range(symbols.count if name[0] else 0):
        if strcmp(symbols.names[i], name) == 0:
            return i + 1
    if symbols.count == MAX_SYMBOLS:
        return OPEN
    symbols.names[symbols.count] = name
    symbols.count += 1
    return symbols.count


cdef int infer_input(NodeCall* call, Symbols* symbols, const Input* declared, size_t index) noexcept nogil:
    """Fill an input's shape; -1 where not even the number of its axes is known."""
    cdef Tensor* tensor = &call.inputs[declared.slot]
    cdef const char* names[MAX_RANK]
    cdef void* info = NULL
    cdef int i
    call.status = (<get_indexed_t> call.api[SHAPE_INFER_CONTEXT_GET_INPUT_TYPE_SHAPE])(call.context, index, &info)
    if call.status is not NULL or read_shape(call, info, tensor, declared.name):
        return -1
    tensor.present = True
    if index == 0:
        call.status = (<get_type_t> call.api[GET_TENSOR_ELEMENT_TYPE])(info, &symbols.type)
        if call.status is not NULL:
            return -1
    call.status = (<get_symbols_t> call.api[GET_SYMBOLIC_DIMENSIONS])(info, names, tensor.rank)
    if call.status is not NULL:
        return -1
    for i in range(tensor.rank):
        if tensor.shape[i] < 0 or (names[i] is not NULL and names[i][0]):
            tensor.symbols[i] = <signed char> symbol_of(symbols, names[i])
            tensor.shape[i] = STAND_IN
    # An input of unknown rank looks like a scalar, and every input that has no data yet and matters has axes.
    return 0 if tensor.rank or not declared.required else -1


cdef int infer_inputs(NodeCall* call, Symbols* symbols) noexcept nogil:
    cdef size_t count = 0
    cdef int i
    call.status = (<get_size_t> call.api[SHAPE_INFER_CONTEXT_GET_INPUT_COUNT])(call.context, &count)
    if call.status is not NULL:
        return -1
    for i in range(call.row.input_count):
        if <size_t> i < count and infer_input(call, symbols, &call.row.inputs[i], i):
            return -1
    return 0


cdef Status set_shape(NodeCall* call, int index, const Symbols* symbols) noexcept nogil:
    """Tell ONNX Runtime the shape of a result, if none of its dimensions is open: it would take -1 for a number."""
    cdef Tensor* tensor = &call.outputs[index]
    cdef const char* names[MAX_RANK]
    cdef Api api = call.api
    cdef void* info = NULL
    cdef Status status
    cdef int i
    for i in range(tensor.rank):
        names[i] = ""
        if not known(tensor, i):
            if tensor.symbols[i] == OPEN or symbols.names[tensor.symbols[i] - 1][0] == 0:
                return NULL
            names[i] = symbols.names[tensor.symbols[i] - 1]
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
    cdef Value[MAX_ATTRIBUTES] values
    cdef Symbols symbols
    cdef Source source
    cdef NodeCall call
    cdef Status status
    cdef int i
    begin_call(&call, (<const Op*> op).row, values, (<const Op*> op).api, context)
    symbols.count = 0
    source.api = call.api
    source.info = NULL
    source.inference = context
    status = read_attributes(&source, call.row, values)
    if status is not NULL:
        return status
    if infer_inputs(&call, &symbols):  # not enough is known
        release_status(call.api, call.status)
        return NULL
    if call.row.plan(&call):
        # Where sizes are open, the kernel reports the error when it runs.
        return NULL if symbols.count else outcome(&call)
    for i in range(call.row.output_count):
        status = set_shape(&call, i, &symbols)
        if status is not NULL:
            return status
    return NULL
