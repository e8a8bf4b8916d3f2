/* questions COUNT RATE: writes so many frames, so many a second. */
#include "sample.h"
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 0;
    long each = (argc > 2 ? atol(argv[2]) : 1000) / 1000;
    uint64_t random = 88172645463325252u;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (long i = 0; i < count; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        PPT_WRITE_SAMPLE(f) {
            f.kind = random % 8 < 5 ? 1 : random % 4;
            f.who = (random >> 8) % 1000;
            f.handle_start = ppt_sample_now();
            f.handle_end = f.handle_start + 1000 + (random >> 20) % 100000;
            f.bytes = (random >> 40) % 4096;
            f.cost = i;
        }
        if (i % each != each - 1)
            continue;
        if ((next.tv_nsec += 1000000) >= 1000000000)
            next.tv_nsec -= 1000000000, next.tv_sec++;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
}
