# One call of a kernel: tensors in, a plan of the results, the kernel on the session's threads, tensors out.

cdef enum:
    MAX_RANK = 64  # as in NumPy
    OPEN = -1

cdef struct Tensor:
    bint present
    int rank
    int64_t[MAX_RANK] shape
    # While shapes are inferred, of each dimension: 0 where its number is known, else the number is a stand-in, and this
    # is which symbol it has, from 1 on, or OPEN.
    signed char[MAX_RANK] symbols
    Py_ssize_t size
    int type
    # The elements that the kernel reads or writes, in the type that it computes in.
    void* data
    # The tensor's own memory: another one where its type is another.
    void* memory

cdef struct Kernel:
    const Row* row
    Api api
    int version
    int runtime
    const Overload* overload
    Value values[MAX_ATTRIBUTES]

cdef struct NodeCall:
    const Row* row
    const Kernel* kernel  # NULL while shapes are inferred
    const Value* values  # by slot
    Api api
    void* context
    Tensor inputs[MAX_INPUTS]  # by slot
    Tensor outputs[MAX_OUTPUTS]
    void* scratch  # of compute, for deliver; freed at the end
    char message[MESSAGE]
    Status status  # an error of ONNX Runtime itself

# How many threads a session may have at most: how finely kernels split their work. Set once, with the table.
cdef int most_threads = 1

cdef struct Job:
    loop_t loop
    const void* arguments
    Py_ssize_t items
    Py_ssize_t size
    int failed


cdef void run_part(void* data, size_t part) noexcept nogil:
    cdef Job* job = <Job*> data
    cdef Py_ssize_t begin = <Py_ssize_t> part * job.size
    if job.loop(job.arguments, begin, min(begin + job.size, job.items)):
        job.failed = 1


cdef int parallel_for_session(
    const Executor* executor, loop_t loop, const void* arguments, Py_ssize_t items, Py_ssize_t grain
) noexcept nogil:
    """The executor of ONNX Runtime: the session's own threads, where its version lends them."""
    cdef const NodeCall* call = <const NodeCall*> executor.pool
    cdef Job job
    job.size = max(grain, <Py_ssize_t> 1)
    cdef Py_ssize_t parts = (items + job.size - 1) // job.size
    if parts < 2 or call.kernel.version < NEWEST_API:
        return loop(arguments, 0, items) if items > 0 else 0
    job.loop = loop
    job.arguments = arguments
    job.items = items
    job.failed = 0
    cdef Status status = (<ort_parallel_for_t> call.api[KERNEL_CONTEXT_PARALLEL_FOR])(call.context, run_part, parts, 0, &job)
    if status is not NULL:
        release_status(call.api, status)
        return -1
    return -job.failed


cdef int run_kernel(NodeCall* call, int which, const void* arguments) noexcept nogil:
    """Run a kernel of the call's operator."""
    cdef Executor executor
    executor.parallel_for = parallel_for_session
    executor.pool = call
    executor.threads = most_threads if call.kernel.version >= NEWEST_API else 1
    if call.kernel.overload.kernels[which](arguments, &executor):
        snprintf(call.message, MESSAGE, "not enough memory for the scratch space of a kernel")
        return -1
    return 0


cdef int width(int type) noexcept nogil:
    if type in (TYPE_INT64, TYPE_UINT64, TYPE_DOUBLE):
        return 8
    if type in (TYPE_FLOAT, TYPE_INT32, TYPE_UINT32):
        return 4
    return 2 if type in (TYPE_INT16, TYPE_UINT16, TYPE_FLOAT16) else 1


cdef Py_ssize_t extent(const Tensor* tensor, int begin, int end) noexcept nogil:
    """The number of elements that some axes span.

    Sizes that a node made absurd may wrap around: ONNX Runtime refuses them when it is asked for the memory.
    """
    cdef uint64_t product = 1
    cdef int i
    for i in range(begin, end):
        product *= <uint64_t> tensor.shape[i]
    return <Py_ssize_t> product


cdef void count_elements(Tensor* tensor) noexcept nogil:
    tensor.size = extent(tensor, 0, tensor.rank)


cdef int check_rank(NodeCall* call, size_t rank, Tensor* tensor, const char* name) noexcept nogil:
    if rank > MAX_RANK:
        snprintf(call.message, MESSAGE, "%s: expected at most %d axes, got %d", name, <int> MAX_RANK, <int> rank)
        return -1
    tensor.rank = <int> rank
    memset(tensor.symbols, 0, rank)
    return 0


cdef int read_shape(NodeCall* call, const void* info, Tensor* tensor, const char* name) noexcept nogil:
    cdef size_t rank = 0
    call.status = (<get_size_t> call.api[GET_DIMENSIONS_COUNT])(info, &rank)
    if call.status is not NULL or check_rank(call, rank, tensor, name):
        return -1
    call.status = (<get_dimensions_t> call.api[GET_DIMENSIONS])(info, tensor.shape, rank)
    return 0 if call.status is NULL else -1


cdef int read_shape_of_value(NodeCall* call, void* value, Tensor* tensor, const char* name) noexcept nogil:
    cdef void* info = NULL
    cdef const int64_t* shape = NULL
    cdef size_t rank = 0
    cdef int type, failed, i
    if call.kernel.runtime >= LENDS_SHAPES:
        call.status = (<get_shape_t> call.api[GET_TENSOR_ELEMENT_TYPE_AND_SHAPE_DATA_REFERENCE])(
            value, &type, &shape, &rank)
        if call.status is not NULL or check_rank(call, rank, tensor, name):
            return -1
        for i in range(tensor.rank):
            tensor.shape[i] = shape[i]
        return 0
    call.status = (<get_pointer_t> call.api[GET_TENSOR_TYPE_AND_SHAPE])(value, &info)
    if call.status is not NULL:
        return -1
    failed = read_shape(call, info, tensor, name)
    (<release_t> call.api[RELEASE_TENSOR_TYPE_AND_SHAPE_INFO])(info)
    return failed


cdef void* converted(const void* source, int type, int computed, Py_ssize_t count) noexcept nogil:
    """New memory with elements in the type that a kernel computes in; NULL where there is none."""
    cdef void* made = allocate(max(count, 1) * width(computed))
    cdef Py_ssize_t i
    if made is NULL:
        return NULL
    if computed == TYPE_FLOAT:
        if type == TYPE_FLOAT16:
            widen(<const half_t*> source, <float*> made, count)
        else:
            for i in range(count):
                (<float*> made)[i] = <float> (<const double*> source)[i]
    elif type == TYPE_FLOAT16:
        for i in range(count):
            (<double*> made)[i] = from_half((<const half_t*> source)[i])
    else:
        for i in range(count):
            (<double*> made)[i] = (<const float*> source)[i]
    return made


cdef int fetch_input(NodeCall* call, const Input* declared, size_t index) noexcept nogil:
    cdef Tensor* tensor = &call.inputs[declared.slot]
    cdef int computed = call.kernel.overload.computed
    cdef void* value = NULL
    cdef void* memory = NULL
    call.status = (<get_indexed_t> call.api[KERNEL_CONTEXT_GET_INPUT])(call.context, index, &value)
    if call.status is not NULL or value is NULL:
        return 0 if call.status is NULL else -1
    if read_shape_of_value(call, value, tensor, declared.name):
        return -1
    count_elements(tensor)
    call.status = (<get_pointer_t> call.api[GET_TENSOR_MUTABLE_DATA])(value, &memory)
    if call.status is not NULL:
        return -1
    tensor.present = True
    tensor.data = tensor.memory = memory
    tensor.type = declared.type or call.kernel.overload.types[index]
    if declared.type == 0 and tensor.type != computed:
        tensor.data = converted(memory, tensor.type, computed, tensor.size)
        if tensor.data is NULL:
            return out_of_memory(call)
    return 0


cdef int out_of_memory(NodeCall* call) noexcept nogil:
    snprintf(call.message, MESSAGE, "not enough memory")
    return -1


cdef int type_of_output(const Row* row, const Overload* overload, size_t index) noexcept nogil:
    return row.outputs[index].type or overload.types[0]


cdef int place_output(NodeCall* call, int index) noexcept nogil:
    """Ask ONNX Runtime for the memory of a result whose shape is planned."""
    cdef Tensor* tensor = &call.outputs[index]
    cdef void* value = NULL
    cdef void* memory = NULL
    tensor.type = type_of_output(call.row, call.kernel.overload, index)
    count_elements(tensor)
    call.status = (<get_output_t> call.api[KERNEL_CONTEXT_GET_OUTPUT])(
        call.context, index, tensor.shape, tensor.rank, &value)
    if call.status is NULL and value is not NULL:
        call.status = (<get_pointer_t> call.api[GET_TENSOR_MUTABLE_DATA])(value, &memory)
    if call.status is not NULL:
        return -1
    tensor.present = value is not NULL
    tensor.data = tensor.memory = memory
    if not tensor.present or tensor.type == TYPE_FLOAT16:
        tensor.data = allocate(max(tensor.size, 1) * (4 if tensor.type == TYPE_FLOAT16 else width(tensor.type)))
        if tensor.data is NULL:
            return out_of_memory(call)
    return 0


cdef void finish(NodeCall* call, bint done) noexcept nogil:
    """Round what was computed in float32, and free all scratch memory."""
    cdef Tensor* tensor
    cdef int i
    for i in range(call.row.output_count):
        tensor = &call.outputs[i]
        if tensor.data is tensor.memory:
            continue
        if done and tensor.present:
            narrow(<const float*> tensor.data, <half_t*> tensor.memory, tensor.size)
        free(tensor.data)
    for i in range(call.row.input_count):
        tensor = &call.inputs[i]
        if tensor.data is not tensor.memory:
            free(tensor.data)
    free(call.scratch)


cdef Status outcome(NodeCall* call) noexcept nogil:
    """The error of a call that failed: ONNX Runtime's own, or ours with the operator's name before it."""
    cdef char[MESSAGE] message
    if call.status is not NULL:
        return call.status
    snprintf(message, MESSAGE, "%s: %s", call.row.title, call.message)
    return make_status(call.api, ORT_INVALID_ARGUMENT, message)


cdef void begin_call(NodeCall* call, const Row* row, const Value* values, Api api, void* context) noexcept nogil:
    cdef int i
    call.row, call.values, call.api, call.context = row, values, api, context
    call.kernel = NULL
    call.status = NULL
    call.scratch = NULL
    call.message[0] = 0
    for i in range(MAX_INPUTS):
        call.inputs[i].present = False
        call.inputs[i].data = call.inputs[i].memory = NULL
    for i in range(MAX_OUTPUTS):
        call.outputs[i].data = call.outputs[i].memory = NULL


cdef int perform(NodeCall* call, size_t inputs) noexcept nogil:
    """All steps of a call, until one fails."""
    cdef int i
    for i in range(min(call.row.input_count, <int> inputs)):
        if fetch_input(call, &call.row.inputs[i], i):
            return -1
    if call.row.plan(call):
        return -1
    if call.row.deliver is not NULL:
        return call.row.compute(call) or call.row.deliver(call)
    for i in range(call.row.output_count):
        if place_output(call, i):
            return -1
    return call.row.compute(call)


cdef Status kernel_compute(void* subject, void* context) noexcept nogil:
    cdef const Kernel* kernel = <const Kernel*> subject
    cdef NodeCall call
    cdef int failed
    cdef size_t inputs = 0
    begin_call(&call, kernel.row, kernel.values, kernel.api, context)
    call.kernel = kernel
    call.status = (<get_size_t> call.api[KERNEL_CONTEXT_GET_INPUT_COUNT])(context, &inputs)
    if call.status is not NULL:
        return call.status
    failed = perform(&call, inputs)
    finish(&call, not failed)
    return outcome(&call) if failed else NULL
