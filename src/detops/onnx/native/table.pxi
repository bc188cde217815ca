# The table of operators as C data. Python fills it once, before the library is handed out, and nothing changes it after.
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset, strcmp, strncmp, strstr

cdef enum:
    MAX_NUMBERS = 8  # in a list; slots.pxi has how many there may be of everything else

cdef struct Value:
    # Of an attribute; no number means that it is absent.
    int count
    int64_t whole[MAX_NUMBERS]
    double number[MAX_NUMBERS]

cdef struct Word:
    # A value that a node may hold (a text or a number), and the number that kernels know it by.
    const char* text
    double number
    double code

cdef struct Attribute:
    const char* names[MAX_NAMES]
    int name_count
    int slot
    int kind
    bint required
    Value fallback
    Word words[MAX_WORDS]
    int word_count
    int order[MAX_NUMBERS]
    int order_count

cdef struct Input:
    const char* name
    int slot
    int type  # 0: any of the operator's
    bint required

cdef struct Output:
    int type  # 0: that of the first input

cdef struct Overload:
    # ONNX Runtime finds an operator by the types of its inputs, so each combination is one of its own.
    int types[MAX_INPUTS]
    int computed  # the type that the kernels take
    operator_t kernels[MAX_KERNELS]

cdef struct NodeCall

cdef enum:  # what a step may return but 0
    REFUSED = -1
    UNKNOWN = 1  # a plan that depends on data, before there is any

# Of a family of operators: plan checks shapes and sets those of the results, compute runs the kernel. Where the size of
# a result depends on data, plan leaves it open, compute writes to scratch memory, and deliver places the results.
ctypedef int (*step_t)(NodeCall* call) noexcept nogil

cdef struct Row:
    const char* domain
    const char* name
    const char* title
    int start  # the oldest opset version that has this form, where there are others; else 1
    step_t plan
    step_t compute
    step_t deliver  # NULL where plan knows all sizes
    Input inputs[MAX_INPUTS]
    int input_count
    Output outputs[MAX_OUTPUTS]
    int output_count
    Attribute attributes[MAX_ATTRIBUTES]
    int attribute_count
    Value fixed[MAX_ATTRIBUTES]  # by slot: what the operator itself settles
    Overload* overloads
    int overload_count
    bint has_optional
