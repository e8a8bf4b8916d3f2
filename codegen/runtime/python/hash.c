/* Hashes of what the program has, for fields of types `hash` and `hash128`. */
static PyObject *pptpy_hash(PyObject *module, PyObject *data) {
    Py_buffer view;
    (void)module;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) != 0)
        return 0;
    uint64_t const hash = ppt_hash(view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLongLong(hash);
}

static PyObject *pptpy_hash_u64(PyObject *module, PyObject *number) {
    (void)module;
    PyObject *index = PyNumber_Index(number);
    if (index == 0)
        return 0;
    unsigned long long const value = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    if (value == (unsigned long long)-1 && PyErr_Occurred())
        return 0;
    return PyLong_FromUnsignedLongLong(ppt_hash_u64(value));
}

static PyObject *pptpy_hash128(PyObject *module, PyObject *data) {
    Py_buffer view;
    (void)module;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) != 0)
        return 0;
    ppt_hash128_t const hash = ppt_hash128(view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return PyBytes_FromStringAndSize((const char *)hash.bytes, sizeof hash.bytes);
}
