/* What the frame of a slowed interval costs: writes a hundred frames every 5 ms until it is killed, and says how many
 * ns one took. `cost NS`: the interval lasts so long; with 0, its thread does not wait at all. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "jobs.h"

#define BATCH 100

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
    int64_t length = argc > 1 ? atoll(argv[1]) : 0;
    setlinebuf(stdout);
    for (;;) {
        int64_t start = now_ns(), rest = 0;
        for (int i = 0; i < BATCH; i++) {
            PPT_WRITE_SERVE(f) {
                f.job = (uint64_t)i;
                f.work_start = f.work_end = ppt_jobs_now();
                if (length > 0) {
                    int64_t at = now_ns();
                    while (now_ns() < at + length)
                        ;
                    f.work_end = ppt_jobs_now();
                    rest += now_ns() - at;
                }
            }
        }
        int64_t took = now_ns() - start - rest;
        printf("%lld %lld\n", (long long)took / BATCH, (long long)rest / BATCH);
        struct timespec pause = {0, 5000000};
        nanosleep(&pause, NULL);
    }
}
