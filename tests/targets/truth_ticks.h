/* The CPU's counter as a test wants it: 2^60 ahead, 244 ppm fast, and from a moment that the test
 * chooses on further ahead, or behind. Rust: tests/e2e/session/clocks.rs. */
#ifndef TRUTH_TICKS_H
#define TRUTH_TICKS_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* comes first of all: -include */
#endif
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
extern uint64_t truth_jump_at, truth_jump_by;
#ifdef __cplusplus
}
#endif

static inline uint64_t truth_raw(void) {
#ifdef __aarch64__
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return __builtin_ia32_rdtsc();
#endif
}

static inline uint64_t truth_ticks(void) {
    uint64_t raw = truth_raw();
    uint64_t shown = (UINT64_C(1) << 60) + raw + (raw >> 12);
    uint64_t at = __atomic_load_n(&truth_jump_at, __ATOMIC_RELAXED);
    return raw < at ? shown : shown + __atomic_load_n(&truth_jump_by, __ATOMIC_RELAXED);
}
#endif
