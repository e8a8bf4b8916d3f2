"""What a frame costs a Python program, beside a call of a C function that does nothing.

    $ cargo build --release && python3 bench/python.py target/release

Builds a module of writer.frame for this interpreter, and measures before, while and after `ppt
attach` is attached to it. Nothing here passes or fails.
"""
import importlib
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from timeit import repeat

EMPTY = """
#include <Python.h>
static PyObject *call(PyObject *m, PyObject *const *a, Py_ssize_t n, PyObject *k) {
    (void)m, (void)a, (void)n, (void)k;
    Py_RETURN_NONE;
}
static PyMethodDef methods[] = {
    {"call", (PyCFunction)(void (*)(void))call, METH_FASTCALL | METH_KEYWORDS, 0}, {0, 0, 0, 0}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "empty", .m_methods = methods};
PyMODINIT_FUNC PyInit_empty(void) { return PyModule_Create(&module); }
"""
CALLS = 200_000
ROUNDS = 9

binaries = os.path.abspath(sys.argv[1])
here = os.path.dirname(os.path.abspath(__file__))
with tempfile.TemporaryDirectory() as folder:
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    pptc = [f"{binaries}/pptc", "--emit", "python", "-o", folder, f"{here}/writer.frame"]
    subprocess.run(pptc, check=True)
    with open(f"{folder}/empty.c", "w") as file:
        file.write(EMPTY)
    for name, sources in [("writer", ["writer.c", "writer_python.c"]), ("empty", ["empty.c"])]:
        cc = ["cc", "-O2", "-fPIC", "-shared", "-I", sysconfig.get_path("include")]
        subprocess.run(cc + sources + ["-o", name + suffix], check=True, cwd=folder)
    sys.path.insert(0, folder)
    writer, empty = importlib.import_module("writer"), importlib.import_module("empty")

    ARGUMENTS = {"none": "", "two": "kind=1, who=2", "eight": "1, 2, 3, 4, 5, 6, 7, 8"}

    def measure(title):
        for what, arguments in ARGUMENTS.items():
            for function in ("empty.call", "writer.writer"):
                rounds = repeat(
                    f"f({arguments})", "f = " + function, repeat=ROUNDS, number=CALLS,
                    timer=time.thread_time, globals={"empty": empty, "writer": writer},
                )
                ns = sorted(it / CALLS * 1e9 for it in rounds)
                print(f"{title:6} {function:14} {what:6} {ns[ROUNDS // 2]:7.1f} ns "
                      f"({ns[0]:.1f}–{ns[-1]:.1f})")

    print(sys.version.split()[0], sysconfig.get_platform())
    measure("off")
    attach = subprocess.Popen(
        [f"{binaries}/ppt", "attach", str(os.getpid()), "-q", "-o", "-"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )
    for line in attach.stderr:
        if line.startswith("attached:"):
            break
    measure("on")
    attach.terminate()
    attach.wait()
    measure("off")
