/* At each `go N`, writes a frame of each form about each millisecond, N times, in which the stamps
 * lie between two readings of CLOCK_REALTIME. `jump AT BY`: see truth_ticks.h. C11 and C++17. */
#ifdef __cplusplus
#include "truth.hpp"
using ppt::truth::now;
using ppt::truth::now_monotonic;
using ppt::truth::now_realtime;
#else
#define _GNU_SOURCE
#include "truth.h"
#define now ppt_truth_now
#define now_monotonic ppt_truth_now_monotonic
#define now_realtime ppt_truth_now_realtime
#endif
#include "truth_ticks.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t truth_jump_at = UINT64_MAX, truth_jump_by;

/* Neither stamp nor reading is taken before the other one is done. */
static void fence(void) {
#ifdef __aarch64__
    __asm__ volatile("isb" ::: "memory");
#else
    __builtin_ia32_lfence();
#endif
}

static int64_t real(void) {
    struct timespec t;
    fence();
    clock_gettime(CLOCK_REALTIME, &t);
    fence();
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#ifdef __cplusplus
static void write(uint64_t n) {
    ppt::truth::block::write([&](auto &f) {
        f.n = n;
        f.before = real();
        f.when = now();
        f.after = real();
    });
    int64_t before = real();
    ppt::truth::scoped::scope s;
    s->start_after = real();
    s->n = n;
    s->start_before = before;
    s->mono = now_monotonic();
    s->real = now_realtime();
    s->end_before = real();
}
#else
static void write(uint64_t n) {
    PPT_WRITE_BLOCK(f) {
        f.n = n;
        f.before = real();
        f.when = now();
        f.after = real();
    }
    WRITE_MACROS_N(n);
    WRITE_MACROS_BEFORE(real());
    WRITE_MACROS_WHEN_TIMESTAMP();
    WRITE_MACROS_AFTER(real());
    ppt_write_macros_frame();
    PPT_WRITE_SCOPED(f) {
        f.n = n;
        f.start_before = real();
        f.work_start = now();
        f.start_after = real();
        f.mono = now_monotonic();
        f.real = now_realtime();
        f.end_before = real();
        f.work_end = now();
        f.end_after = real();
    }
}
#endif

int main(void) {
    char line[100];
    uint64_t n = 0;
    if (now() != 0)
        return 3;
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        if (strncmp(line, "jump ", 5) == 0) {
            char *rest;
            uint64_t at = strtoull(line + 5, &rest, 10);
            truth_jump_by = strtoull(rest, 0, 10);
            __atomic_store_n(&truth_jump_at, at, __ATOMIC_RELAXED);
            puts("jump");
        } else {
            struct timespec pause = {0, 1000000};
            for (uint64_t end = n + strtoull(line + 3, 0, 10); n < end; n++) {
                write(n);
                nanosleep(&pause, 0);
            }
            printf("written %" PRIu64 "\n", n);
        }
        fflush(stdout);
    }
    return 0;
}
