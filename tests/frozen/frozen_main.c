/* musl-gcc -static -Os -s frozen_main.c frozen.c -o abi1-x86_64
 *
 * Prints `ready`; for each line N on stdin it writes N frames of each kind and prints `written`. */
#include "frozen.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t wall(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void one(uint64_t n) {
    PPT_WRITE_ALL(f) {
        f.work_start = ppt_frozen_now();
        f.n = n;
        f.a = (int8_t)-n, f.b = (int16_t)(300 - n), f.c = -(int32_t)n * 1000, f.d = -(int64_t)n << 33;
        f.e = (uint8_t)n, f.f = (uint16_t)(n * 7), f.g = (uint32_t)(n << 20), f.h = ~n;
        f.i = (float)n / 4, f.j = (double)n / 3, f.k = n % 2, f.l = (int64_t)n * 1000000;
        f.color = n % 3 == 0 ? FROZEN_COLOR_RED : n % 3 == 1 ? FROZEN_COLOR_GREEN : FROZEN_COLOR_BLUE;
        snprintf(f.name, sizeof f.name, "no %u", (unsigned)n % 1000);
        f.raw[0] = (uint8_t)n, f.raw[4] = 0xff;
        f.pair[0] = (int)n, f.pair[1] = -(int)n;
        f.pos[0] = 0.5f, f.pos[2] = -(float)n;
        f.wall = wall();
        f.work_end = ppt_frozen_now();
    }
    PPT_WRITE_TICK(f) {
        f.count = (uint32_t)n;
        f.when = ppt_frozen_now();
    }
}

int main(void) {
    char line[64];
    uint64_t n = 0, written = 0;
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        for (unsigned long i = strtoul(line, 0, 10); i > 0; i--, n++) {
            if (ppt_frozen_on())
                written += 2;
            one(n);
        }
        printf("written %lu\n", (unsigned long)written);
        fflush(stdout);
    }
    return 0;
}
