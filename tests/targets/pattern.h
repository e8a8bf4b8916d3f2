/* What the words of a frame must be, given its thread and its number. */
#include <stdint.h>

static inline uint64_t pattern(uint64_t thread, uint64_t n) {
    return (n * 256 + thread + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

#define FILL(f, t, i)                                                                              \
    do {                                                                                           \
        uint64_t word = pattern((t), (i));                                                         \
        (f).thread = (t);                                                                          \
        (f).n = (i);                                                                               \
        (f).a = word;                                                                              \
        (f).b = ~word;                                                                             \
        (f).c = word << 32 | word >> 32;                                                           \
        (f).d = word ^ (i);                                                                        \
    } while (0)
