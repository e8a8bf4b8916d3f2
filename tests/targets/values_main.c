/* values THREADS FRAMES: each thread writes FRAMES rounds of one frame of every kind, with values
 * that follow from the thread's number and the round. */
#include "clocks.h"
#include "values.h"
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int rounds;
static unsigned long written[64];

static struct timeval tv(int64_t s, int64_t us) {
    struct timeval t = {s, us};
    return t;
}

static void one(int thread, int i) {
    char text[12];
    snprintf(text, sizeof text, "t%d-%d", thread, i % 10000000);

    WRITE_EVERY_THREAD(thread);
    WRITE_EVERY_I(i);
    WRITE_EVERY_A((int8_t)(i * 3));
    WRITE_EVERY_B((uint8_t)(i * 5));
    WRITE_EVERY_C((int16_t)(i * 257));
    WRITE_EVERY_D((uint16_t)(i * 263));
    WRITE_EVERY_E(-i);
    WRITE_EVERY_F(4000000000u + (uint32_t)i);
    WRITE_EVERY_G(INT64_C(-5000000000) * i);
    WRITE_EVERY_H(UINT64_C(18446744073709551615) - (uint64_t)i);
    WRITE_EVERY_X((float)i * 0.25f);
    WRITE_EVERY_Y((double)i / 3.0);
    WRITE_EVERY_EVEN(i % 2 == 0);
    WRITE_EVERY_TOOK(INT64_C(1000000007) * i);
    WRITE_EVERY_WHEN(tv(1000000000 + i, i % 1000000));
    WRITE_EVERY_SMALL(i % 3 == 0 ? VALUES_SMALL_NONE : i % 3 == 1 ? VALUES_SMALL_SOME : 9);
    WRITE_EVERY_WIDE(i % 2 == 0 ? VALUES_WIDE_LOW : VALUES_WIDE_HIGH);
    WRITE_EVERY_NAME(text);
    uint8_t raw[5] = {(uint8_t)i, 1, 2, 0xff, 0};
    WRITE_EVERY_RAW(raw);
    int16_t three[3] = {(int16_t)i, (int16_t)-i, 7};
    WRITE_EVERY_THREE(three);
    double pair[2] = {(double)i, -0.5};
    WRITE_EVERY_PAIR(pair);
    struct timeval stamps[2] = {tv(i, 5), tv(0, 0)};
    WRITE_EVERY_STAMPS(stamps);
    WRITE_EVERY_TEXT(i % 2 == 0 ? "tab\there, back\\slash, \x1b[31m" : "");
    ppt_write_every_frame();

    PPT_WRITE_LITTLE(f) {
        f.thread = thread;
        f.i = i;
        f.n = (uint16_t)(i * 7);
    }

    PPT_WRITE_ODD(f) {
        static const float singles[8] = {NAN,    INFINITY, -INFINITY, -0.0f,
                                         1e-45f, FLT_MAX,  0.1f,      16777216.0f};
        static const double doubles[8] = {NAN,    INFINITY, -INFINITY, -0.0,
                                          5e-324, DBL_MAX,  0.1,       9007199254740992.0};
        f.thread = thread;
        f.i = i;
        f.f = singles[i % 8];
        f.d = doubles[i % 8];
        memcpy(f.cut, "é€", 5);
        memcpy(f.control, "a\tb\n\\\x01", 6);
        f.list[0] = VALUES_SMALL_NONE;
        f.list[1] = VALUES_SMALL_MANY;
        f.list[2] = (uint8_t)i;
        for (int bit = 0; bit < 9; bit++)
            f.flags[bit] = (i >> bit & 1) != 0;
        f.most = UINT64_MAX - (uint64_t)thread;
        f.least = INT64_MIN + i;
        f.spans[0] = -i;
        f.spans[1] = INT64_MAX;
        f.at_start = tv(i + 1, 1);
        f.at_end = tv(i + 2, 999999);
    }

    PPT_WRITE_TICK(f) {
        f.thread = thread;
        f.i = i;
        struct timespec real = {i, i % 1000000000};
        f.real = real;
    }
    written[thread] += 4;
}

static void *work(void *arg) {
    for (int i = 0; i < rounds; i++)
        one((int)(intptr_t)arg, i);
    return 0;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    rounds = argc > 2 ? atoi(argv[2]) : 1000;
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    pthread_t ids[64];
    for (intptr_t t = 0; t < threads; t++)
        pthread_create(&ids[t], 0, work, (void *)t);
    unsigned long sum = 0;
    for (int t = 0; t < threads; t++) {
        pthread_join(ids[t], 0);
        sum += written[t];
    }
    printf("written %lu\n", sum);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
