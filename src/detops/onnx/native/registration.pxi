# The functions by which ONNX Runtime asks about an operator, and the library's one entry.

cdef enum:
    MAX_GROUPS = 5
    SAFE_INFERENCE = 32  # minor version of the oldest ONNX Runtime that was seen to infer with absent inputs

cdef struct Op:
    CustomOp head  # ONNX Runtime knows this part
    const Row* row
    Api api
    int runtime
    const Overload* overload

cdef struct Group:
    # Operators that are registered together, all of one domain; a part of a domain stands for itself where the whole is
    # not selected. The entries in a session's options say what is registered there.
    const char* domain
    const char* domain_entry
    const char* entry
    bint is_part
    bint selected
    Row* rows
    int row_count

cdef struct Registration:
    # For one copy of ONNX Runtime in this process. Sessions keep pointers into it, so it lives as long as the process.
    Api api
    Registration* next
    void* domains[MAX_GROUPS]

cdef Group[MAX_GROUPS] groups
cdef int group_count = 0
cdef Registration* registrations = NULL

cdef extern from *:
    """
    #ifdef _MSC_VER
    #include <intrin.h>
    static volatile long detops_busy = 0;
    static void detops_lock(void) { while (_InterlockedExchange(&detops_busy, 1)) ; }
    static void detops_unlock(void) { _InterlockedExchange(&detops_busy, 0); }
    #else
    static char detops_busy = 0;
    static void detops_lock(void) { while (__atomic_test_and_set(&detops_busy, __ATOMIC_ACQUIRE)) ; }
    static void detops_unlock(void) { __atomic_clear(&detops_busy, __ATOMIC_RELEASE); }
    #endif
    """
    void lock "detops_lock" () noexcept nogil
    void unlock "detops_unlock" () noexcept nogil


# The table is filled where Python imports detops. A process that was only told the path of this file may have a Python
# that has not done so. These lines touch no object of this module: Python may not have initialized it yet.
cdef extern from *:
    """
    static void detops_error_text(char *message, size_t room) {
        PyObject *type, *value, *trace, *text = NULL;
        PyErr_Fetch(&type, &value, &trace);
        if (value != NULL) text = PyObject_Str(value);
        const char *words = text != NULL ? PyUnicode_AsUTF8(text) : NULL;
        snprintf(message, room, "detops: this process's Python cannot import detops: %s", words != NULL ? words : "?");
        PyErr_Clear();
        Py_XDECREF(text);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    }

    static int detops_fill_by_python(char *message, size_t room) {
        if (!Py_IsInitialized()) {
            snprintf(message, room, "detops: this library needs a process with Python that can import detops");
            return -1;
        }
        PyGILState_STATE state = PyGILState_Ensure();
        PyObject *module = PyImport_ImportModule("detops.onnx._library");
        PyObject *filled = module != NULL ? PyObject_CallMethod(module, "_native", NULL) : NULL;
        int failed = filled == NULL;
        if (failed) detops_error_text(message, room);
        else snprintf(message, room, "detops: this is not the library of the detops that this process imports; "
                      "take the path from detops.onnx.library_path()");
        Py_XDECREF(filled);
        Py_XDECREF(module);
        PyGILState_Release(state);
        return failed ? -1 : 0;
    }
    """
    int fill_by_python "detops_fill_by_python" (char* message, size_t room) noexcept nogil


cdef const Row* row_of(const CustomOp* op) noexcept nogil:
    return (<const Op*> op).row


cdef const char* op_name(const CustomOp* op) noexcept nogil:
    return row_of(op).name


cdef const char* op_provider(const CustomOp* op) noexcept nogil:
    return "CPUExecutionProvider"


cdef size_t op_input_count(const CustomOp* op) noexcept nogil:
    return row_of(op).input_count


cdef size_t op_output_count(const CustomOp* op) noexcept nogil:
    return row_of(op).output_count


cdef int op_input_type(const CustomOp* op, size_t index) noexcept nogil:
    return row_of(op).inputs[index].type or (<const Op*> op).overload.types[index]


cdef int op_output_type(const CustomOp* op, size_t index) noexcept nogil:
    return type_of_output(row_of(op), (<const Op*> op).overload, index)


cdef int op_input_characteristic(const CustomOp* op, size_t index) noexcept nogil:
    return 0 if row_of(op).inputs[index].required else 1


cdef int op_output_characteristic(const CustomOp* op, size_t index) noexcept nogil:
    # Of several results any may be left out.
    return 0 if row_of(op).output_count == 1 else 1


cdef int op_memory_type(const CustomOp* op, size_t index) noexcept nogil:
    return 0


cdef int op_one(const CustomOp* op) noexcept nogil:
    return 1


cdef int op_start(const CustomOp* op) noexcept nogil:
    return row_of(op).start


cdef int op_any_version(const CustomOp* op) noexcept nogil:
    return 2147483647


cdef Status create_kernel(const CustomOp* op, Api api, const void* info, void** made) noexcept nogil:
    cdef Kernel* kernel = <Kernel*> calloc(1, sizeof(Kernel))
    cdef Source source
    cdef Status status
    if kernel is NULL:
        return make_status(api, ORT_FAIL, "detops: not enough memory")
    kernel.row = row_of(op)
    kernel.api = api
    kernel.version = op.version
    kernel.runtime = (<const Op*> op).runtime
    kernel.overload = (<const Op*> op).overload
    source.api = api
    source.info = info
    source.inference = NULL
    status = read_attributes(&source, kernel.row, kernel.values)
    if status is not NULL:
        free(kernel)
        return status
    made[0] = kernel
    return NULL


cdef void destroy_kernel(void* kernel) noexcept nogil:
    free(kernel)


cdef void describe(Op* op, const Row* row, int which, Api api, int runtime) noexcept nogil:
    op.row = row
    op.api = api
    op.runtime = runtime
    op.overload = &row.overloads[which]
    op.head.version = min(runtime, <int> NEWEST_API)
    op.head.get_name = op_name
    op.head.get_execution_provider = op_provider
    op.head.get_input_type = op_input_type
    op.head.get_input_count = op_input_count
    op.head.get_output_type = op_output_type
    op.head.get_output_count = op_output_count
    op.head.kernel_destroy = destroy_kernel
    op.head.get_input_characteristic = op_input_characteristic
    op.head.get_output_characteristic = op_output_characteristic
    op.head.get_input_memory_type = op_memory_type
    op.head.get_variadic_input_min_arity = op_one
    op.head.get_variadic_input_homogeneity = op_one
    op.head.get_variadic_output_min_arity = op_one
    op.head.get_variadic_output_homogeneity = op_one
    op.head.create_kernel_v2 = create_kernel
    op.head.kernel_compute_v2 = kernel_compute
    # Older versions crash while they infer shapes where an optional input is absent.
    if not row.has_optional or runtime >= SAFE_INFERENCE:
        op.head.infer_output_shape = infer_output_shape
    op.head.get_start_version = op_start
    op.head.get_end_version = op_any_version


cdef Status make_domain(Api api, int runtime, const Group* group, void** made) noexcept nogil:
    """Create a domain with the operators of a group, one for each combination of types."""
    cdef Status status = (<create_domain_t> api[CREATE_CUSTOM_OP_DOMAIN])(group.domain, made)
    cdef Op* op
    cdef int i, j
    for i in range(group.row_count):
        if group.rows[i].start > 1 and runtime < NEWEST_API:  # which would take it for all versions
            continue
        for j in range(group.rows[i].overload_count):
            if status is not NULL:
                return status
            op = <Op*> calloc(1, sizeof(Op))
            if op is NULL:
                return make_status(api, ORT_FAIL, "detops: not enough memory")
            describe(op, &group.rows[i], j, api, runtime)
            status = (<pair_t> api[CUSTOM_OP_DOMAIN_ADD])(made[0], op)
    return status


cdef Registration* registration_for(Api api) noexcept nogil:
    global registrations
    cdef Registration* found = registrations
    while found is not NULL and found.api is not api:
        found = found.next
    if found is NULL:
        found = <Registration*> calloc(1, sizeof(Registration))
        if found is not NULL:
            found.api = api
            found.next = registrations
            registrations = found
    return found


cdef Status add_group(Api api, void* options, const Group* group, void* domain) noexcept nogil:
    """Add a group to options that don't have it yet: ONNX Runtime itself takes a domain once."""
    cdef int whole = 0, any = 0
    cdef char[MESSAGE] message
    cdef Status status = (<has_entry_t> api[HAS_SESSION_CONFIG_ENTRY])(options, group.entry, &whole)
    if status is NULL:
        status = (<has_entry_t> api[HAS_SESSION_CONFIG_ENTRY])(options, group.domain_entry, &any)
    if status is not NULL or whole or (any and group.is_part):
        return status
    if any:
        snprintf(message, MESSAGE, "detops: the domain '%s' was registered with these options before, with fewer operators; "
                 "name all domains at once", group.domain)
        return make_status(api, ORT_INVALID_ARGUMENT, message)
    status = (<pair_t> api[ADD_CUSTOM_OP_DOMAIN])(options, domain)
    if status is NULL:
        status = (<add_entry_t> api[ADD_SESSION_CONFIG_ENTRY])(options, group.entry, "1")
    if status is NULL:
        status = (<add_entry_t> api[ADD_SESSION_CONFIG_ENTRY])(options, group.domain_entry, "1")
    return status


cdef Status add_groups(Api api, int runtime, void* options) noexcept nogil:
    cdef Registration* registration = registration_for(api)
    cdef Status status = NULL
    cdef int i
    if registration is NULL:
        return make_status(api, ORT_FAIL, "detops: not enough memory")
    for i in range(group_count):
        if groups[i].selected and status is NULL:
            if registration.domains[i] is NULL:
                status = make_domain(api, runtime, &groups[i], &registration.domains[i])
            if status is NULL:
                status = add_group(api, options, &groups[i], registration.domains[i])
    return status


cdef int minor_version(const char* version) noexcept nogil:
    """Return the minor version of ONNX Runtime: 24 for "1.24.0"; 0 where the major version is not 1."""
    cdef int number = 0, i = 2
    if strncmp(version, "1.", 2):
        return 0
    while c"0" <= version[i] <= c"9":
        number = 10 * number + (version[i] - c"0")
        i += 1
    return number


cdef public void* RegisterCustomOps(void* options, const void* api_base) noexcept nogil:
    """The entry that ONNX Runtime calls for a library of custom operators."""
    cdef const ApiBase* base = <const ApiBase*> api_base
    cdef const char* text = base.get_version_string()
    cdef int runtime = minor_version(text)
    cdef char[MESSAGE] message
    cdef Status status
    # To ask for a newer table than there is prints to stderr.
    cdef Api api = base.get_api(max(min(runtime, <int> NEWEST_API), 1))
    if runtime < OLDEST_API:
        snprintf(message, MESSAGE, "detops needs ONNX Runtime 1.%d or later, this is %s", <int> OLDEST_API, text)
        return make_status(api, ORT_FAIL, message)
    if group_count == 0 and (fill_by_python(message, MESSAGE) or group_count == 0):
        return make_status(api, ORT_FAIL, message)
    lock()
    status = add_groups(api, runtime, options)
    unlock()
    return status
