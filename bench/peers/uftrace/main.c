/* uftrace: entry and return of a function, its arguments on entry. Built to be patched at run time. */
#include "../../commands.h"

NOINLINE void payload(int32_t a, int32_t b, uint64_t c, uint64_t d, uint64_t e);
NOINLINE __attribute__((patchable_function_entry(5, 0))) void payload(int32_t a, int32_t b, uint64_t c,
                                                                     uint64_t d, uint64_t e) {
    __asm__ volatile("" : : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e));
}

static void stamped(uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++)
        payload((int32_t)i, (int32_t)(i >> 1), i, i, i);
}

int main(void) {
    static const struct way ways[] = {{"stamped", stamped, 1 << 20, 0}, {0, 0, 0, 0}};
    return serve(ways, (struct collecting){0, 0});
}
