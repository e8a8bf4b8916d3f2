/* Frames of several sizes, and one after the other into several buffers. The frame files are made by
 * the harness: `sizeN.frame` has frames of N bytes, `fanN.frame` the payload without a time. */
#include "../../commands.h"
#include "fan1.h"
#include "fan2.h"
#include "fan3.h"
#include "fan4.h"
#include "fan5.h"
#include "fan6.h"
#include "fan7.h"
#include "fan8.h"
#include "size128.h"
#include "size16.h"
#include "size256.h"
#include "size32.h"
#include "size512.h"
#include "size64.h"

/* The sequence number takes eight bytes. */
#define SIZE(bytes)                                                                                \
    static NOINLINE void size##bytes(uint64_t i) {                                                 \
        PPT_WRITE_SIZE##bytes(f) {                                                                 \
            for (unsigned word = 0; word < bytes / 8 - 1; word++)                                  \
                f.words[word] = i;                                                                 \
        }                                                                                          \
    }                                                                                              \
    LOOP_OVER(size##bytes)
SIZE(16)
SIZE(32)
SIZE(64)
SIZE(128)
SIZE(256)
SIZE(512)

#define FAN(number)                                                                                \
    static NOINLINE void fan##number(uint64_t i) {                                                 \
        PPT_WRITE_FAN##number(f) {                                                                 \
            f.a = (int32_t)i;                                                                      \
            f.b = (int32_t)(i >> 1);                                                               \
            f.c = i;                                                                               \
            f.d = i;                                                                               \
            f.e = i;                                                                               \
        }                                                                                          \
    }
FAN(1)
FAN(2)
FAN(3)
FAN(4)
FAN(5)
FAN(6)
FAN(7)
FAN(8)

static void (*const FANS[])(uint64_t) = {fan1, fan2, fan3, fan4, fan5, fan6, fan7, fan8};

/* Called through a table, so that any number of buffers costs the same call. */
#define BUFFERS(number)                                                                            \
    static void buffers##number(uint64_t from, uint64_t to) {                                      \
        for (uint64_t i = from; i < to; i++)                                                       \
            FANS[i % number](i);                                                                   \
    }
BUFFERS(1)
BUFFERS(2)
BUFFERS(4)
BUFFERS(8)

#define WAY(name, loop) {#name, loop, 1 << 20, 0}

int main(void) {
    static const struct way ways[] = {
        WAY(size16, size16_calls),   WAY(size32, size32_calls),   WAY(size64, size64_calls),
        WAY(size128, size128_calls), WAY(size256, size256_calls), WAY(size512, size512_calls),
        WAY(buffers1, buffers1),     WAY(buffers2, buffers2),     WAY(buffers4, buffers4),
        WAY(buffers8, buffers8),     {0, 0, 0, 0},
    };
    return serve(ways, (struct collecting){0, 0});
}
