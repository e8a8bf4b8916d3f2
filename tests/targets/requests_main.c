/* Serves requests, until stdin ends: a pause of 0.5 ms, work, and the same pause. `requests WORK_US` sleeps for so
 * long, `requests WORK_US spin` computes. Says on each line of stdin how many us the work and what follows it took, on
 * average, in requests from then on. After the line `tell`, it says of each work when it was done (monotonic, us). */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "requests.h"

#define ASKED 20

static long long clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pause_for(long long ns) {
    long long at = clock_ns(CLOCK_MONOTONIC) + ns;
    struct timespec t = {at / 1000000000, at % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static void compute_for(long long ns) {
    long long at = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < at)
        ;
}

int main(int argc, char **argv) {
    long long ns = argc > 1 ? atoll(argv[1]) * 1000 : 1000000, took = 0;
    int asked = 0, tells = 0;
    prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
    puts("ready");
    fflush(stdout);
    for (;;) {
        struct pollfd in = {0, POLLIN, 0};
        char line[64];
        if (poll(&in, 1, 0) > 0) {
            if (read(0, line, sizeof line) <= 0)
                return 0;
            tells |= line[0] == 't';
            asked = ASKED;
            took = 0;
        }
        uint64_t start = ppt_requests_now();
        pause_for(500000);
        long long before = clock_ns(CLOCK_MONOTONIC);
        uint64_t begin = ppt_requests_now();
        if (argc > 2)
            compute_for(ns);
        else
            pause_for(ns);
        PPT_WRITE_PART(f) {
            f.work_start = begin;
            f.work_end = ppt_requests_now();
        }
        took += clock_ns(CLOCK_MONOTONIC) - before;
        if (tells) {
            printf("done %lld\n", clock_ns(CLOCK_MONOTONIC) / 1000);
            fflush(stdout);
        }
        pause_for(500000);
        PPT_WRITE_SERVED(f) {
            f.request_start = start;
            f.request_end = ppt_requests_now();
        }
        if (asked && --asked == 0) {
            printf("took %lld\n", took / ASKED / 1000);
            fflush(stdout);
        }
    }
}
