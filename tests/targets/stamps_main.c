/* Stamps the start and the end of work that takes between `least` and `most`, until a line on stdin
 * stops it. `third` is set only at every third pass. */
#define _GNU_SOURCE
#include "stamps.h"
#include <pthread.h>
#include <stdio.h>

static int over;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void *loop(void *arg) {
    (void)arg;
    for (uint64_t n = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); n++) {
        int64_t before = now();
        WRITE_PASS_WORK_START_TIMESTAMP();
        int64_t start = now();
        while (now() - start < 100000) {
        }
        int64_t end = now();
        WRITE_PASS_WORK_END_TIMESTAMP();
        int64_t after = now();
        WRITE_PASS_N(n);
        WRITE_PASS_LEAST(end - start);
        WRITE_PASS_MOST(after - before);
        if (n % 3 == 0)
            WRITE_PASS_THIRD(n);
        ppt_write_pass_frame();
    }
    return 0;
}

int main(void) {
    pthread_t id;
    pthread_create(&id, 0, loop, 0);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    pthread_join(id, 0);
    return 0;
}
