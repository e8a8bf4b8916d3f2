/* Encodes pictures: reads their numbers from stdin and writes them to stdout. Each tenth one is a key
 * picture, which takes longer. Each hundredth one is damaged, and goes no further. */
#define _POSIX_C_SOURCE 200809L
#include "video.h"

#include <stdint.h>
#include <stdio.h>
#include <time.h>

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void encode(uint32_t n) {
    int64_t end = now_ns() + (n % 10 == 0 ? 3000000 : 200000);
    while (now_ns() < end) {
    }
}

int main(void) {
    uint32_t n;
    while (fread(&n, sizeof n, 1, stdin) == 1) {
        PPT_WRITE_BEGUN(f) {
            f.picture = ppt_hash(&n, sizeof n);
        }
        if (n % 100 == 99)
            continue;
        encode(n);
        PPT_STEP_PICTURE(ENCODED, f) {
            f.n = n;
        }
        fwrite(&n, sizeof n, 1, stdout);
        fflush(stdout);
    }
    return 0;
}
