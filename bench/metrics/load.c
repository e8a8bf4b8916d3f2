/* load RATE: at each line SECONDS, writes RATE frames a second for so long, evenly in batches of a
 * millisecond, and says how many it wrote. Each frame comes with an add and an observation. */
#define _GNU_SOURCE
#include "load.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv) {
    long batch = (argc > 1 ? atol(argv[1]) : 1000000) / 1000;
    char line[32];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        long batches = atol(line) * 1000;
        unsigned long written = 0;
        struct timespec next;
        clock_gettime(CLOCK_MONOTONIC, &next);
        for (long i = 0; i < batches; i++) {
            for (long k = 0; k < batch; k++) {
                PPT_WRITE_ITEM(f) {
                    f.n = written;
                    f.twice = 2 * written;
                    written++;
                }
                PPT_ADD_BYTES(64);
                PPT_OBSERVE_WAIT(k * 100);
            }
            next.tv_nsec += 1000000;
            if (next.tv_nsec >= 1000000000) {
                next.tv_nsec -= 1000000000;
                next.tv_sec++;
            }
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
        }
        printf("written %lu\n", written);
        fflush(stdout);
    }
    return 0;
}
