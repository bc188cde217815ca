# ONNX Runtime's C interface. Its table of functions only ever grows at its end, so a function is its place in it: no
# header is needed, and one binary serves all versions from 1.16 on.
from libc.stdint cimport int64_t, uint32_t, uint64_t

ctypedef void** Api
ctypedef void* Status  # NULL is success

cdef enum:
    # Versions of the interface: 16 brought kernels that return a status, 17 shape inference and the session's threads.
    OLDEST_API = 16
    NEWEST_API = 17
    # The first minor version of ONNX Runtime that lends a tensor's shape, instead of an object that holds a copy of it.
    LENDS_SHAPES = 24

cdef enum:  # ONNXTensorElementDataType
    TYPE_FLOAT = 1
    TYPE_UINT8 = 2
    TYPE_INT8 = 3
    TYPE_UINT16 = 4
    TYPE_INT16 = 5
    TYPE_INT32 = 6
    TYPE_INT64 = 7
    TYPE_BOOL = 9
    TYPE_FLOAT16 = 10
    TYPE_DOUBLE = 11
    TYPE_UINT32 = 12
    TYPE_UINT64 = 13

cdef enum:  # OrtErrorCode
    ORT_FAIL = 1
    ORT_INVALID_ARGUMENT = 2

cdef enum:  # OrtOpAttrType
    ATTRIBUTE_INT = 1
    ATTRIBUTE_INTS = 2
    ATTRIBUTE_FLOAT = 3
    ATTRIBUTE_FLOATS = 4
    ATTRIBUTE_STRING = 5

cdef struct ApiBase:
    Api (*get_api)(uint32_t version) noexcept nogil
    const char* (*get_version_string)() noexcept nogil

cdef struct CustomOp:  # OrtCustomOp: 152 bytes in version 16, 176 in version 17
    uint32_t version
    void* create_kernel
    const char* (*get_name)(const CustomOp* op) noexcept nogil
    const char* (*get_execution_provider)(const CustomOp* op) noexcept nogil
    int (*get_input_type)(const CustomOp* op, size_t index) noexcept nogil
    size_t (*get_input_count)(const CustomOp* op) noexcept nogil
    int (*get_output_type)(const CustomOp* op, size_t index) noexcept nogil
    size_t (*get_output_count)(const CustomOp* op) noexcept nogil
    void* kernel_compute
    void (*kernel_destroy)(void* kernel) noexcept nogil
    int (*get_input_characteristic)(const CustomOp* op, size_t index) noexcept nogil
    int (*get_output_characteristic)(const CustomOp* op, size_t index) noexcept nogil
    int (*get_input_memory_type)(const CustomOp* op, size_t index) noexcept nogil
    int (*get_variadic_input_min_arity)(const CustomOp* op) noexcept nogil
    int (*get_variadic_input_homogeneity)(const CustomOp* op) noexcept nogil
    int (*get_variadic_output_min_arity)(const CustomOp* op) noexcept nogil
    int (*get_variadic_output_homogeneity)(const CustomOp* op) noexcept nogil
    Status (*create_kernel_v2)(const CustomOp* op, Api api, const void* info, void** kernel) noexcept nogil
    Status (*kernel_compute_v2)(void* kernel, void* context) noexcept nogil
    Status (*infer_output_shape)(const CustomOp* op, void* context) noexcept nogil
    int (*get_start_version)(const CustomOp* op) noexcept nogil
    int (*get_end_version)(const CustomOp* op) noexcept nogil

# The types of the functions in the table, each named by what it does, and their places.
ctypedef Status (*create_status_t)(int code, const char* message) noexcept nogil
ctypedef const char* (*status_text_t)(Status status) noexcept nogil
ctypedef void (*release_t)(void* subject) noexcept nogil
ctypedef Status (*create_domain_t)(const char* name, void** domain) noexcept nogil
ctypedef Status (*pair_t)(void* subject, void* other) noexcept nogil
ctypedef Status (*get_pointer_t)(const void* subject, void** found) noexcept nogil
ctypedef Status (*get_size_t)(const void* subject, size_t* found) noexcept nogil
ctypedef Status (*get_type_t)(const void* info, int* found) noexcept nogil
ctypedef Status (*get_dimensions_t)(const void* info, int64_t* found, size_t count) noexcept nogil
ctypedef Status (*get_shape_t)(const void* value, int* type, const int64_t** shape, size_t* rank) noexcept nogil
ctypedef Status (*get_symbols_t)(const void* info, const char** found, size_t count) noexcept nogil
ctypedef Status (*get_float_t)(const void* info, const char* name, float* found) noexcept nogil
ctypedef Status (*get_int_t)(const void* info, const char* name, int64_t* found) noexcept nogil
ctypedef Status (*get_list_t)(const void* info, const char* name, void* found, size_t* count) noexcept nogil
ctypedef Status (*get_indexed_t)(const void* context, size_t index, void** found) noexcept nogil
ctypedef Status (*get_output_t)(void* context, size_t index, const int64_t* shape, size_t rank, void** found) noexcept nogil
ctypedef Status (*create_info_t)(void** info) noexcept nogil
ctypedef Status (*set_type_t)(void* info, int type) noexcept nogil
ctypedef Status (*set_dimensions_t)(void* info, const int64_t* shape, size_t rank) noexcept nogil
ctypedef Status (*set_symbols_t)(void* info, const char** names, size_t rank) noexcept nogil
ctypedef Status (*set_indexed_t)(void* context, size_t index, const void* info) noexcept nogil
ctypedef Status (*get_named_t)(const void* context, const char* name, void** found) noexcept nogil
ctypedef Status (*read_attribute_t)(const void* attribute, int type, void* found, size_t size, size_t* used) noexcept nogil
ctypedef Status (*add_entry_t)(void* options, const char* key, const char* value) noexcept nogil
ctypedef Status (*has_entry_t)(const void* options, const char* key, int* found) noexcept nogil
ctypedef Status (*ort_parallel_for_t)(
    const void* context, void (*work)(void* data, size_t index) noexcept nogil, size_t total, size_t batches, void* data
) noexcept nogil

cdef enum:
    CREATE_STATUS = 0
    GET_ERROR_MESSAGE = 2
    CREATE_CUSTOM_OP_DOMAIN = 26
    CUSTOM_OP_DOMAIN_ADD = 27
    ADD_CUSTOM_OP_DOMAIN = 28
    GET_TENSOR_MUTABLE_DATA = 51
    CREATE_TENSOR_TYPE_AND_SHAPE_INFO = 57
    SET_TENSOR_ELEMENT_TYPE = 58
    SET_DIMENSIONS = 59
    GET_TENSOR_ELEMENT_TYPE = 60
    GET_DIMENSIONS_COUNT = 61
    GET_DIMENSIONS = 62
    GET_SYMBOLIC_DIMENSIONS = 63
    GET_TENSOR_TYPE_AND_SHAPE = 65
    KERNEL_INFO_GET_ATTRIBUTE_FLOAT = 85
    KERNEL_INFO_GET_ATTRIBUTE_INT64 = 86
    KERNEL_INFO_GET_ATTRIBUTE_STRING = 87
    KERNEL_CONTEXT_GET_INPUT_COUNT = 88
    KERNEL_CONTEXT_GET_INPUT = 90
    KERNEL_CONTEXT_GET_OUTPUT = 91
    RELEASE_STATUS = 93
    RELEASE_TENSOR_TYPE_AND_SHAPE_INFO = 99
    ADD_SESSION_CONFIG_ENTRY = 130
    KERNEL_INFO_GET_ATTRIBUTE_ARRAY_FLOAT = 162
    KERNEL_INFO_GET_ATTRIBUTE_ARRAY_INT64 = 163
    HAS_SESSION_CONFIG_ENTRY = 237
    SHAPE_INFER_CONTEXT_GET_INPUT_COUNT = 267
    SHAPE_INFER_CONTEXT_GET_INPUT_TYPE_SHAPE = 268
    SHAPE_INFER_CONTEXT_GET_ATTRIBUTE = 269
    SHAPE_INFER_CONTEXT_SET_OUTPUT_TYPE_SHAPE = 270
    SHAPE_INFER_CONTEXT_SET_SYMBOLIC_DIMENSIONS = 271
    READ_OP_ATTR = 272
    KERNEL_CONTEXT_PARALLEL_FOR = 274
    GET_TENSOR_ELEMENT_TYPE_AND_SHAPE_DATA_REFERENCE = 414


cdef inline Status make_status(Api api, int code, const char* message) noexcept nogil:
    return (<create_status_t> api[CREATE_STATUS])(code, message)


cdef inline const char* status_text(Api api, Status status) noexcept nogil:
    return (<status_text_t> api[GET_ERROR_MESSAGE])(status)


cdef inline void release_status(Api api, Status status) noexcept nogil:
    if status is not NULL:
        (<release_t> api[RELEASE_STATUS])(status)
