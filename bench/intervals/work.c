/* Writes intervals around work of a known length: so many steps of a chain of multiplications, whose
 * length is that of 2^28 of them, timed as a whole. Prints `step NS`, then `written COUNT`. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "intervals.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const uint32_t STEPS[] = {0, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
enum { KINDS = sizeof STEPS / sizeof *STEPS, ROUNDS = 2000 };

static uint64_t number = 1;

/* Each multiplication needs the one before: nothing overlaps. */
static void steps(uint32_t count) {
    uint64_t x = number;
    for (uint32_t i = 0; i < count; i++)
        __asm__ volatile("imul %1, %0" : "+r"(x) : "r"(UINT64_C(0x9e3779b97f4a7c15)));
    number = x;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(void) {
    double best = 1e9;
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    for (int round = 0; round < 9; round++) {
        double const start = now();
        steps(1u << 28);
        double const one = (now() - start) / (1u << 28);
        best = one < best ? one : best;
    }
    printf("step %.6f\n", best);
    for (int round = 0; round < ROUNDS; round++) {
        for (int kind = 0; kind < KINDS; kind++) {
            PPT_WRITE_WORK(f) {
                f.steps = STEPS[kind];
                f.length_start = ppt_intervals_now();
                steps(STEPS[kind]);
                f.length_end = ppt_intervals_now();
            }
        }
    }
    printf("written %d\n", ROUNDS * KINDS);
    return 0;
}
