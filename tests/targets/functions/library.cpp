/* A shared library that has the hooks of its own, and the stack of open calls of the program. */
static __attribute__((noinline)) int inner(int x) { return x * 3; }

int library_call(int x);

int library_call(int x) { return inner(x) + 1; }
