/* ---- ppt for Python: the part that is the same in every module ---------------------------- */

#if PY_VERSION_HEX < 0x03090000
#error "ppt: Python 3.9 or later is needed"
#endif

#define PPT_PY __attribute__((unused)) static

/* A field: how a Python value gets into a frame. */
typedef struct pptpy_field {
    const char *name;
    const char *where; /* for messages: frame, field and type */
    int (*set)(PyObject *value, void *to, size_t bytes, const char *where);
    unsigned offset, bytes; /* of an element */
    unsigned count;         /* elements of an array; 0 if it is no array */
} pptpy_field;

typedef struct pptpy_frame {
    const char *name;
    const pptpy_field *fields;
    Py_ssize_t count; /* fields */
    Py_ssize_t first; /* where their names begin in the module's */
    void (*start)(void *frame), (*end)(void *frame); /* of the interval that a scope measures */
    void (*commit)(const void *frame);
} pptpy_frame;

typedef struct pptpy_value {
    const char *name;
    int64_t value;
} pptpy_value;

typedef struct pptpy_enum {
    const char *name;
    const pptpy_value *values;
    Py_ssize_t count;
    int is_signed;
} pptpy_enum;

/* The module's state in one interpreter. */
typedef struct pptpy_state {
    PyTypeObject *scope_type;
    PyObject *off; /* the scope that does nothing */
    PyObject *names[PPT_PY_NAMES];
} pptpy_state;

/* Stores the value into the field, or raises an exception that names the field. */

PPT_PY int pptpy_needs(const char *what, PyObject *value, const char *where) {
    PyErr_Format(PyExc_TypeError, "%s: %s is needed, not %.100s", where, what,
                 Py_TYPE(value)->tp_name);
    return -1;
}

PPT_PY int pptpy_does_not_fit(PyObject *value, const char *where) {
    PyErr_Format(PyExc_OverflowError, "%s: %R does not fit", where, value);
    return -1;
}

/* A new reference to the value as an int, by __index__. */
PPT_PY PyObject *pptpy_index(PyObject *value, const char *where) {
    if (PyLong_Check(value)) {
        Py_INCREF(value);
        return value;
    }
    if (PyIndex_Check(value))
        return PyNumber_Index(value);
    pptpy_needs("an int", value, where);
    return 0;
}

PPT_PY int pptpy_signed(PyObject *value, int64_t min, int64_t max, int64_t *to,
                         const char *where) {
    PyObject *index = pptpy_index(value, where);
    if (index == 0)
        return -1;
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(index, &overflow);
    int wrong = overflow != 0 || number < min || number > max;
    if (wrong)
        pptpy_does_not_fit(index, where);
    Py_DECREF(index);
    *to = number;
    return -wrong;
}

PPT_PY int pptpy_unsigned(PyObject *value, uint64_t max, uint64_t *to, const char *where) {
    PyObject *index = pptpy_index(value, where);
    if (index == 0)
        return -1;
    unsigned long long number = PyLong_AsUnsignedLongLong(index);
    int wrong = 0;
    if (number == (unsigned long long)-1 && PyErr_Occurred()) {
        wrong = 1;
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_Clear();
            pptpy_does_not_fit(index, where);
        }
    } else if (number > max) {
        wrong = pptpy_does_not_fit(index, where) != 0;
    }
    Py_DECREF(index);
    *to = number;
    return -wrong;
}

#define PPT_PY_SIGNED(name, type, min, max)                                                        \
    PPT_PY int pptpy_##name(PyObject *value, void *to, size_t bytes, const char *where) {         \
        int64_t number = 0;                                                                        \
        (void)bytes;                                                                               \
        if (pptpy_signed(value, min, max, &number, where) != 0)                                   \
            return -1;                                                                             \
        *(type *)to = (type)number;                                                                \
        return 0;                                                                                  \
    }
#define PPT_PY_UNSIGNED(name, type, max)                                                           \
    PPT_PY int pptpy_##name(PyObject *value, void *to, size_t bytes, const char *where) {         \
        uint64_t number = 0;                                                                       \
        (void)bytes;                                                                               \
        if (pptpy_unsigned(value, max, &number, where) != 0)                                      \
            return -1;                                                                             \
        *(type *)to = (type)number;                                                                \
        return 0;                                                                                  \
    }
PPT_PY_SIGNED(i8, int8_t, INT8_MIN, INT8_MAX)
PPT_PY_SIGNED(i16, int16_t, INT16_MIN, INT16_MAX)
PPT_PY_SIGNED(i32, int32_t, INT32_MIN, INT32_MAX)
PPT_PY_SIGNED(i64, int64_t, INT64_MIN, INT64_MAX)
PPT_PY_UNSIGNED(u8, uint8_t, UINT8_MAX)
PPT_PY_UNSIGNED(u16, uint16_t, UINT16_MAX)
PPT_PY_UNSIGNED(u32, uint32_t, UINT32_MAX)
PPT_PY_UNSIGNED(u64, uint64_t, UINT64_MAX)

PPT_PY int pptpy_double(PyObject *value, double *to, const char *where) {
    if (PyFloat_CheckExact(value)) {
        *to = PyFloat_AS_DOUBLE(value);
        return 0;
    }
    if (!PyNumber_Check(value))
        return pptpy_needs("a float", value, where);
    *to = PyFloat_AsDouble(value);
    if (*to != -1.0 || !PyErr_Occurred())
        return 0;
    if (!PyErr_ExceptionMatches(PyExc_OverflowError))
        return -1;
    PyErr_Clear();
    return pptpy_does_not_fit(value, where);
}

PPT_PY int pptpy_f64(PyObject *value, void *to, size_t bytes, const char *where) {
    (void)bytes;
    return pptpy_double(value, (double *)to, where);
}

PPT_PY int pptpy_f32(PyObject *value, void *to, size_t bytes, const char *where) {
    double number = 0;
    (void)bytes;
    if (pptpy_double(value, &number, where) != 0)
        return -1;
    *(float *)to = (float)number;
    return 0;
}

PPT_PY int pptpy_bool(PyObject *value, void *to, size_t bytes, const char *where) {
    int truth = PyObject_IsTrue(value);
    (void)bytes;
    (void)where;
    if (truth < 0)
        return -1;
    *(bool *)to = truth != 0;
    return 0;
}

/* Seconds and the nanoseconds after them. */
PPT_PY int pptpy_time(PyObject *value, int64_t *seconds, int64_t *rest, const char *where) {
    int64_t ns = 0;
    if (pptpy_signed(value, INT64_MIN, INT64_MAX, &ns, where) != 0)
        return -1;
    *seconds = ns / 1000000000 - (ns % 1000000000 < 0);
    *rest = ns % 1000000000 + (ns % 1000000000 < 0 ? 1000000000 : 0);
    return 0;
}

PPT_PY int pptpy_timeval(PyObject *value, void *to, size_t bytes, const char *where) {
    struct timeval *time = (struct timeval *)to;
    int64_t seconds = 0, rest = 0;
    (void)bytes;
    if (pptpy_time(value, &seconds, &rest, where) != 0)
        return -1;
    time->tv_sec = (time_t)seconds;
    time->tv_usec = (suseconds_t)(rest / 1000);
    return 0;
}

PPT_PY int pptpy_timespec(PyObject *value, void *to, size_t bytes, const char *where) {
    struct timespec *time = (struct timespec *)to;
    int64_t seconds = 0, rest = 0;
    (void)bytes;
    if (pptpy_time(value, &seconds, &rest, where) != 0)
        return -1;
    time->tv_sec = (time_t)seconds;
    time->tv_nsec = (long)rest;
    return 0;
}

PPT_PY void pptpy_pad(void *to, size_t bytes, const char *from, size_t count) {
    memcpy(to, from, count);
    memset((char *)to + count, 0, bytes - count);
}

/* Text in UTF-8, where U+FFFD stands for each half of a character of UTF-16. */
PPT_PY PyObject *pptpy_utf8(PyObject *value) {
    PyErr_Clear();
    PyObject *bytes = PyUnicode_AsEncodedString(value, "utf-8", "surrogatepass");
    if (bytes == 0)
        return 0;
    unsigned char *text = (unsigned char *)PyBytes_AS_STRING(bytes);
    for (Py_ssize_t i = 0; i + 2 < PyBytes_GET_SIZE(bytes); i++)
        if (text[i] == 0xed && text[i + 1] >= 0xa0)
            memcpy(text + i, "\xef\xbf\xbd", 3);
    return bytes;
}

/* Text: stores as many whole characters as fit. */
PPT_PY int pptpy_text(PyObject *value, void *to, size_t bytes, const char *where) {
    Py_ssize_t length = 0;
    if (!PyUnicode_Check(value))
        return pptpy_needs("a str", value, where);
    PyObject *made = 0;
    const char *text = PyUnicode_AsUTF8AndSize(value, &length);
    if (text == 0) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError) || (made = pptpy_utf8(value)) == 0)
            return -1;
        text = PyBytes_AS_STRING(made);
        length = PyBytes_GET_SIZE(made);
    }
    size_t count = (size_t)length;
    if (count > bytes) {
        count = bytes;
        while (count > 0 && ((unsigned char)text[count] & 0xc0) == 0x80)
            count--;
    }
    pptpy_pad(to, bytes, text, count);
    Py_XDECREF(made);
    return 0;
}

PPT_PY int pptpy_bytes(PyObject *value, void *to, size_t bytes, const char *where) {
    Py_buffer view;
    if (!PyObject_CheckBuffer(value))
        return pptpy_needs("a bytes-like object", value, where);
    if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE) != 0)
        return -1;
    size_t count = (size_t)view.len < bytes ? (size_t)view.len : bytes;
    pptpy_pad(to, bytes, (const char *)view.buf, count);
    PyBuffer_Release(&view);
    return 0;
}

/* An array takes its number of elements from any iterable. It copies the list first, because
 * converting an element may run code that changes the list. */
PPT_PY int pptpy_array(PyObject *value, const pptpy_field *field, char *to) {
    PyObject *items = PySequence_Tuple(value);
    if (items == 0) {
        if (PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            pptpy_needs("a sequence", value, field->where);
        }
        return -1;
    }
    int wrong = 0;
    if (PyTuple_GET_SIZE(items) != (Py_ssize_t)field->count) {
        PyErr_Format(PyExc_ValueError, "%s: %u elements are needed, not %zd", field->where,
                     field->count, PyTuple_GET_SIZE(items));
        wrong = -1;
    }
    for (unsigned i = 0; wrong == 0 && i < field->count; i++)
        wrong = field->set(PyTuple_GET_ITEM(items, i), to + (size_t)i * field->bytes, field->bytes,
                           field->where);
    Py_DECREF(items);
    return wrong;
}

/* No text, no bytes and no array are zeros, as if they were not given. */
PPT_PY int pptpy_set(PyObject *value, const pptpy_field *field, void *frame) {
    char *to = (char *)frame + field->offset;
    if (value == Py_None && (field->count != 0 || field->set == pptpy_text || field->set == pptpy_bytes)) {
        memset(to, 0, (size_t)field->bytes * (field->count != 0 ? field->count : 1));
        return 0;
    }
    if (field->count != 0)
        return pptpy_array(value, field, to);
    return field->set(value, to, field->bytes, field->where);
}

/* The number of the field of that name; -1 if there is none, -2 if an exception is raised. If names
 * come in the order of the fields, it finds each at once. */
PPT_PY Py_ssize_t pptpy_find(PyObject *const *names, Py_ssize_t count, Py_ssize_t next,
                              PyObject *name) {
    for (Py_ssize_t i = next; i < count; i++)
        if (names[i] == name)
            return i;
    for (Py_ssize_t i = 0; i < next && i < count; i++)
        if (names[i] == name)
            return i;
    /* The module's end clears its names. */
    for (Py_ssize_t i = 0; i < count && names[i] != 0; i++) {
        int order = PyUnicode_Compare(names[i], name);
        if (order == 0)
            return i;
        if (order == -1 && PyErr_Occurred())
            return -2;
    }
    return -1;
}

/* Sets the fields that a call names, or raises an exception. */
PPT_PY int pptpy_fill(const pptpy_state *state, const pptpy_frame *kind, void *frame,
                       PyObject *const *args, Py_ssize_t positional, PyObject *keywords) {
    if (positional > kind->count) {
        PyErr_Format(PyExc_TypeError, "%s() has %zd fields, and is given %zd", kind->name,
                     kind->count, positional);
        return -1;
    }
    for (Py_ssize_t i = 0; i < positional; i++)
        if (pptpy_set(args[i], &kind->fields[i], frame) != 0)
            return -1;
    Py_ssize_t named = keywords == 0 ? 0 : PyTuple_GET_SIZE(keywords);
    Py_ssize_t next = positional;
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GET_ITEM(keywords, i);
        Py_ssize_t field = pptpy_find(state->names + kind->first, kind->count, next, name);
        if (field < 0 || field < positional) {
            if (field != -2)
                PyErr_Format(PyExc_TypeError,
                             field < 0 ? "%s() has no field %R" : "%s() is given field %R twice",
                             kind->name, name);
            return -1;
        }
        if (pptpy_set(args[positional + i], &kind->fields[field], frame) != 0)
            return -1;
        next = field + 1;
    }
    return 0;
}

/* A frame, which is written at the end of a `with` block. */
typedef struct pptpy_scope {
    PyObject_HEAD
    const pptpy_frame *kind; /* 0: nobody was attached */
    int wanted;
    uint64_t frame[PPT_PY_STRIDE / 8];
} pptpy_scope;

/* Two threads may share a scope, also without the GIL. */
#if PY_VERSION_HEX >= 0x030d0000
#define PPT_PY_LOCK(object) Py_BEGIN_CRITICAL_SECTION(object)
#define PPT_PY_UNLOCK() Py_END_CRITICAL_SECTION()
#else
#define PPT_PY_LOCK(object) {
#define PPT_PY_UNLOCK() }
#endif

PPT_PY PyObject *pptpy_scope_new(const pptpy_state *state, const pptpy_frame *kind,
                                  PyObject *const *args, Py_ssize_t positional,
                                  PyObject *keywords) {
    if (state->scope_type == 0) {
        PyErr_SetString(PyExc_RuntimeError, "the module " PPT_PY_MODULE " is gone");
        return 0;
    }
    pptpy_scope *scope = PyObject_New(pptpy_scope, state->scope_type);
    if (scope == 0)
        return 0;
    scope->kind = kind;
    scope->wanted = 0;
    memset(scope->frame, 0, sizeof scope->frame);
    if (pptpy_fill(state, kind, scope->frame, args, positional, keywords) != 0) {
        Py_DECREF(scope);
        return 0;
    }
    return (PyObject *)scope;
}

PPT_PY PyObject *pptpy_scope_off(const pptpy_state *state) {
    PyObject *off = state->off == 0 ? Py_None : state->off;
    Py_INCREF(off);
    return off;
}

static PyObject *pptpy_scope_enter(PyObject *self, PyObject *none) {
    pptpy_scope *scope = (pptpy_scope *)self;
    (void)none;
    if (scope->kind != 0) {
        PPT_PY_LOCK(self)
        scope->wanted = 1;
        scope->kind->start(scope->frame);
        PPT_PY_UNLOCK()
    }
    Py_INCREF(self);
    return self;
}

static PyObject *pptpy_scope_exit(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    pptpy_scope *scope = (pptpy_scope *)self;
    (void)args;
    (void)count;
    if (scope->kind != 0) {
        PPT_PY_LOCK(self)
        if (scope->wanted) {
            scope->wanted = 0;
            scope->kind->end(scope->frame);
            scope->kind->commit(scope->frame);
        }
        PPT_PY_UNLOCK()
    }
    Py_RETURN_NONE;
}

static PyObject *pptpy_scope_abandon(PyObject *self, PyObject *none) {
    (void)none;
    pptpy_scope *scope = (pptpy_scope *)self;
    if (scope->kind != 0) {
        PPT_PY_LOCK(self)
        scope->wanted = 0;
        PPT_PY_UNLOCK()
    }
    Py_RETURN_NONE;
}

static PyObject *pptpy_scope_set(PyObject *self, PyObject *const *args, Py_ssize_t positional,
                                  PyObject *keywords) {
    pptpy_scope *scope = (pptpy_scope *)self;
    if (scope->kind == 0)
        Py_RETURN_NONE;
    const pptpy_state *state = (const pptpy_state *)PyType_GetModuleState(Py_TYPE(self));
    int wrong = 0;
    if (state == 0)
        return 0;
    PPT_PY_LOCK(self)
    wrong = pptpy_fill(state, scope->kind, scope->frame, args, positional, keywords);
    PPT_PY_UNLOCK()
    if (wrong != 0)
        return 0;
    Py_RETURN_NONE;
}

static void pptpy_scope_free(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

#define PPT_PY_FAST(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef pptpy_scope_methods[] = {
    {"__enter__", pptpy_scope_enter, METH_NOARGS, 0},
    {"__exit__", PPT_PY_FAST(pptpy_scope_exit), METH_FASTCALL, 0},
    {"set", PPT_PY_FAST(pptpy_scope_set), METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("Sets fields of the frame.")},
    {"abandon", pptpy_scope_abandon, METH_NOARGS, PyDoc_STR("No frame after all.")},
    {0, 0, 0, 0},
};

static PyType_Slot pptpy_scope_slots[] = {
    {Py_tp_dealloc, __extension__(void *) pptpy_scope_free},
    {Py_tp_methods, pptpy_scope_methods},
    {Py_tp_doc, (void *)"A frame that is written at the end of a `with` block."},
    {0, 0},
};

static PyType_Spec pptpy_scope_spec = {
    .name = PPT_PY_MODULE ".Scope",
    .basicsize = (int)sizeof(pptpy_scope),
#if PY_VERSION_HEX >= 0x030a0000
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
#else
    .flags = Py_TPFLAGS_DEFAULT,
#endif
    .slots = pptpy_scope_slots,
};

/* An IntEnum of the module. */
PPT_PY int pptpy_add_enum(PyObject *module, const pptpy_enum *it) {
    int wrong = -1;
    PyObject *package = 0, *base = 0, *values = 0, *args = 0, *options = 0, *made = 0;
    if ((package = PyImport_ImportModule("enum")) == 0 ||
        (base = PyObject_GetAttrString(package, "IntEnum")) == 0 || (values = PyList_New(0)) == 0)
        goto done;
    for (Py_ssize_t i = 0; i < it->count; i++) {
        const pptpy_value *value = &it->values[i];
        PyObject *pair = it->is_signed
                             ? Py_BuildValue("(sL)", value->name, (long long)value->value)
                             : Py_BuildValue("(sK)", value->name, (unsigned long long)value->value);
        int appended = pair == 0 ? -1 : PyList_Append(values, pair);
        Py_XDECREF(pair);
        if (appended != 0)
            goto done;
    }
    if ((args = Py_BuildValue("(sO)", it->name, values)) == 0 ||
        (options = Py_BuildValue("{ss}", "module", PyModule_GetName(module))) == 0 ||
        (made = PyObject_Call(base, args, options)) == 0)
        goto done;
    wrong = PyObject_SetAttrString(module, it->name, made);
done:
    Py_XDECREF(package);
    Py_XDECREF(base);
    Py_XDECREF(values);
    Py_XDECREF(args);
    Py_XDECREF(options);
    Py_XDECREF(made);
    return wrong;
}

PPT_PY int pptpy_start(PyObject *module, const pptpy_frame *const *frames, Py_ssize_t count) {
    pptpy_state *state = (pptpy_state *)PyModule_GetState(module);
    state->scope_type =
        (PyTypeObject *)PyType_FromModuleAndSpec(module, &pptpy_scope_spec, 0);
    if (state->scope_type == 0)
        return -1;
    pptpy_scope *off = PyObject_New(pptpy_scope, state->scope_type);
    if (off == 0)
        return -1;
    off->kind = 0;
    off->wanted = 0;
    state->off = (PyObject *)off;
    for (Py_ssize_t i = 0; i < count; i++)
        for (Py_ssize_t field = 0; field < frames[i]->count; field++) {
            PyObject *name = PyUnicode_InternFromString(frames[i]->fields[field].name);
            if (name == 0)
                return -1;
            state->names[frames[i]->first + field] = name;
        }
    Py_INCREF(state->scope_type);
    if (PyModule_AddObject(module, "Scope", (PyObject *)state->scope_type) != 0) {
        Py_DECREF(state->scope_type);
        return -1;
    }
    return 0;
}

static int pptpy_traverse(PyObject *module, visitproc visit, void *arg) {
    pptpy_state *state = (pptpy_state *)PyModule_GetState(module);
    if (state == 0)
        return 0;
    Py_VISIT(state->scope_type);
    Py_VISIT(state->off);
    return 0;
}

static int pptpy_clear(PyObject *module) {
    pptpy_state *state = (pptpy_state *)PyModule_GetState(module);
    if (state == 0)
        return 0;
    Py_CLEAR(state->off);
    Py_CLEAR(state->scope_type);
    for (Py_ssize_t i = 0; i < PPT_PY_NAMES; i++)
        Py_CLEAR(state->names[i]);
    return 0;
}

static void pptpy_free(void *module) { pptpy_clear((PyObject *)module); }
