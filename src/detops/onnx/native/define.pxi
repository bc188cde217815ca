# Filling the table from Python, once: _library.py passes the rows of _table.py.

TYPES = {
    "float16": TYPE_FLOAT16, "float32": TYPE_FLOAT, "float64": TYPE_DOUBLE, "bool": TYPE_BOOL,
    "int8": TYPE_INT8, "int16": TYPE_INT16, "int32": TYPE_INT32, "int64": TYPE_INT64,
    "uint8": TYPE_UINT8, "uint16": TYPE_UINT16, "uint32": TYPE_UINT32, "uint64": TYPE_UINT64,
}
KINDS = {
    "int": ATTRIBUTE_INT, "ints": ATTRIBUTE_INTS, "float": ATTRIBUTE_FLOAT, "floats": ATTRIBUTE_FLOATS,
    "string": ATTRIBUTE_STRING,
}

cdef list _kept = []  # texts that C points to

cdef struct Steps:
    step_t plan
    step_t compute
    step_t deliver


cdef Steps _steps(str family) except *:
    if family == "cumulative":
        return Steps(plan_cumulative, compute_cumulative, NULL)
    if family == "decode_bbox":
        return Steps(plan_decode_bbox, compute_decode_bbox, NULL)
    if family == "deform_conv2d":
        return Steps(plan_deform_conv, compute_deform_conv, NULL)
    if family == "grid_sample":
        return Steps(plan_grid_sample, compute_grid_sample, NULL)
    if family == "instance_norm":
        return Steps(plan_instance_norm, compute_instance_norm, NULL)
    if family == "multi_scale_deform_attn":
        return Steps(plan_deform_attn, compute_deform_attn, NULL)
    if family == "nms":
        return Steps(plan_keep, compute_keep, deliver_keep)
    if family == "non_max_suppression_padded":
        return Steps(plan_nms, compute_nms, NULL)
    if family == "roi_align":
        return Steps(plan_roi_align, compute_roi_align, NULL)
    if family == "roi_pool":
        return Steps(plan_roi_pool, compute_roi_pool, NULL)
    if family == "soft_nms":
        return Steps(plan_soft_nms, compute_soft_nms, deliver_soft_nms)
    raise ValueError(f"family: expected one that native/families has, got {family!r}")


cdef const char* _text(str text) except NULL:
    kept = text.encode()
    _kept.append(kept)
    return <const char*> kept


cdef Value _value(object numbers):
    """A value of a number, several numbers, or None for an absent one."""
    cdef Value value
    cdef int i
    memset(&value, 0, sizeof(Value))
    items = () if numbers is None else numbers if isinstance(numbers, tuple) else (numbers,)
    value.count = len(items)
    for i, item in enumerate(items):
        value.number[i] = item
        if isinstance(item, int):
            value.whole[i] = item
    return value


cdef int _define_attribute(Attribute* attribute, dict source) except -1:
    cdef int i
    attribute.name_count = len(source["names"])
    for i, name in enumerate(source["names"]):
        attribute.names[i] = _text(name)
    attribute.slot = source["slot"]
    attribute.kind = KINDS[source["kind"]]
    attribute.required = source["required"]
    attribute.fallback = _value(source["fallback"])
    attribute.word_count = len(source["words"])
    for i, (word, code) in enumerate(source["words"]):
        if isinstance(word, str):
            attribute.words[i].text = _text(word)
        else:
            attribute.words[i].number = word
        attribute.words[i].code = code
    attribute.order_count = len(source["order"])
    for i, index in enumerate(source["order"]):
        attribute.order[i] = index
    return 0


cdef int _define_row(Row* row, dict source) except -1:
    cdef Steps steps = _steps(source["family"])
    cdef int i, j, k
    row.domain = _text(source["domain"])
    row.name = _text(source["name"])
    row.title = _text(source["title"])
    row.start = source["start"]
    row.plan = steps.plan
    row.compute = steps.compute
    row.deliver = steps.deliver
    row.input_count = len(source["inputs"])
    for i, (name, slot, dtype, required) in enumerate(source["inputs"]):
        row.inputs[i].name = _text(name)
        row.inputs[i].slot = slot
        row.inputs[i].type = 0 if dtype == "T" else TYPES[dtype]
        row.inputs[i].required = required
        row.has_optional = row.has_optional or not required
    row.output_count = len(source["outputs"])
    for i, dtype in enumerate(source["outputs"]):
        row.outputs[i].type = 0 if dtype == "T" else TYPES[dtype]
    for slot, value in source["fixed"]:
        row.fixed[<int> slot] = _value(value)
    row.attribute_count = len(source["attributes"])
    for i, attribute in enumerate(source["attributes"]):
        _define_attribute(&row.attributes[i], attribute)
    row.overload_count = len(source["overloads"])
    row.overloads = <Overload*> calloc(row.overload_count, sizeof(Overload))
    if row.overloads is NULL:
        raise MemoryError
    for i, (dtypes, computed, capsules) in enumerate(source["overloads"]):
        for j, dtype in enumerate(dtypes):
            row.overloads[i].types[j] = TYPES[dtype]
        row.overloads[i].computed = TYPES[computed]
        for k, capsule in enumerate(capsules):
            row.overloads[i].kernels[k] = <operator_t> PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))
    return 0


def define(sources, int threads):
    """Fill the table: for each group its key, its domain, whether it is a part of that, and rows, dicts of plain values."""
    global group_count, most_threads
    cdef Row* rows
    cdef int i, j
    if group_count:
        raise RuntimeError("the table is filled once")
    for i, (key, domain, is_part, operators) in enumerate(sources):
        rows = <Row*> calloc(len(operators), sizeof(Row))
        if rows is NULL:
            raise MemoryError
        for j, source in enumerate(operators):
            _define_row(&rows[j], source)
        groups[i].domain = _text(domain)
        groups[i].domain_entry = _text(f"detops.domain.{domain}")
        groups[i].entry = _text(f"detops.operators.{key}")
        groups[i].is_part = is_part
        groups[i].rows = rows
        groups[i].row_count = len(operators)
    most_threads = threads
    group_count = len(sources)


def select(keys):
    """Choose the groups of registrations from now on."""
    cdef int i
    entries = {f"detops.operators.{key}".encode() for key in keys}
    for i in range(group_count):
        groups[i].selected = groups[i].entry in entries


def layout():
    """Where ONNX Runtime expects what: byte offsets in OrtCustomOp, for tests."""
    cdef CustomOp op
    cdef char* start = <char*> &op
    return {
        "create_kernel": <char*> &op.create_kernel - start,
        "kernel_compute": <char*> &op.kernel_compute - start,
        "kernel_destroy": <char*> &op.kernel_destroy - start,
        "get_input_characteristic": <char*> &op.get_input_characteristic - start,
        "get_input_memory_type": <char*> &op.get_input_memory_type - start,
        "create_kernel_v2": <char*> &op.create_kernel_v2 - start,
        "kernel_compute_v2": <char*> &op.kernel_compute_v2 - start,
        "infer_output_shape": <char*> &op.infer_output_shape - start,
        "get_end_version": <char*> &op.get_end_version - start,
        "size": sizeof(CustomOp),
    }


def described():
    """Return the table as C holds it: the domain, name, inputs, outputs, attributes and types of each row."""
    cdef Row* row
    cdef int i, j, k, m
    names = {code: name for name, code in TYPES.items()} | {0: "T"}
    kinds = {code: name for name, code in KINDS.items()}
    found = []
    for i in range(group_count):
        for j in range(0 if groups[i].is_part else groups[i].row_count):
            row = &groups[i].rows[j]
            found.append({
                "domain": row.domain.decode(),
                "name": row.name.decode(),
                "inputs": [(row.inputs[k].name.decode(), names[row.inputs[k].type], bool(row.inputs[k].required))
                           for k in range(row.input_count)],
                "outputs": [names[row.outputs[k].type] for k in range(row.output_count)],
                "attributes": [
                    (row.attributes[k].names[0].decode(), kinds[row.attributes[k].kind], bool(row.attributes[k].required),
                     [row.attributes[k].names[m].decode() for m in range(1, row.attributes[k].name_count)])
                    for k in range(row.attribute_count)],
                "types": [tuple(names[row.overloads[k].types[m]] for m in range(row.input_count))
                          for k in range(row.overload_count)],
            })
    return found
