/* spans_main SECONDS PAUSE_US: spans that begin in one thread and end in another, of all lengths; chains of
 * three threads; a thread that writes once and then sleeps; spans that never end, and ends without a begin.
 * Some threads lose their CPU between the stamp of a frame and its publication. */
#include "spans.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LANES 64

static unsigned pause_us;
static atomic_int over;
/* The number of the span that is open in a lane; 0: none. */
static _Atomic unsigned long lanes[LANES];
static _Atomic unsigned long next_id = 1;
static _Atomic unsigned long moved, taken;

/* Begins a span in each lane that is free. */
static void *begin(void *argument) {
    unsigned n = (unsigned)(uintptr_t)argument;
    while (!atomic_load(&over)) {
        for (unsigned lane = 0; lane < LANES; lane++) {
            if (atomic_load(&lanes[lane]) != 0)
                continue;
            unsigned long id = atomic_fetch_add(&next_id, 1);
            PPT_BEGIN_REQUEST(f) {
                f.id = id;
                f.code = n;
                if (id % 500 == 0)
                    sched_yield();
            }
            atomic_store(&lanes[lane], id);
        }
        usleep(pause_us);
    }
    return 0;
}

/* Ends spans: lane n in each 2^(n % 10)th round, so some are open for seconds. */
static void *end(void *argument) {
    unsigned own = (unsigned)(uintptr_t)argument;
    for (unsigned long round = 1; !atomic_load(&over); round++) {
        for (unsigned lane = 0; lane < LANES; lane++) {
            if (lane % 2 != own || round % (1ul << (lane % 10)) != 0)
                continue;
            unsigned long id = atomic_load(&lanes[lane]);
            if (id == 0)
                continue;
            PPT_END_REQUEST(f) {
                f.id = id;
                f.code = lane;
                if (id % 700 == 0)
                    usleep(1000);
            }
            atomic_store(&lanes[lane], 0);
        }
        PPT_END_NESTED(f) f.id = 7;
        usleep(pause_us);
    }
    return 0;
}

static void *chain(void *argument) {
    unsigned part = (unsigned)(uintptr_t)argument;
    for (unsigned long id = 1; !atomic_load(&over); id++) {
        if (part == 0) {
            PPT_STEP_HOP(TAKEN, f) f.id = id;
            atomic_store(&taken, id);
            usleep(pause_us / 4);
            continue;
        }
        _Atomic unsigned long *before = part == 1 ? &taken : &moved;
        while (atomic_load(before) < id && !atomic_load(&over))
            usleep(100);
        if (atomic_load(&over))
            break;
        if (part == 1) {
            /* One in a hundred lacks this step. */
            if (id % 100 != 0)
                PPT_STEP_HOP(MOVED, f) f.id = id;
            atomic_store(&moved, id);
        } else {
            PPT_STEP_HOP(DONE, f) f.id = id;
        }
    }
    return 0;
}

static void *silent(void *argument) {
    (void)argument;
    PPT_BEGIN_NESTED(f) f.id = 1;
    while (!atomic_load(&over))
        usleep(50000);
    PPT_END_NESTED(f) f.id = 1;
    return 0;
}

int main(int argc, char **argv) {
    unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 10;
    pause_us = argc > 2 ? (unsigned)atoi(argv[2]) : 1000;
    pthread_t all[8];
    pthread_create(&all[0], 0, silent, 0);
    pthread_create(&all[1], 0, begin, (void *)1);
    pthread_create(&all[2], 0, end, (void *)0);
    pthread_create(&all[3], 0, end, (void *)1);
    for (uintptr_t part = 0; part < 3; part++)
        pthread_create(&all[4 + part], 0, chain, (void *)part);
    for (unsigned n = 0; n < seconds * 20; n++)
        usleep(50000);
    atomic_store(&over, 1);
    for (unsigned n = 0; n < 7; n++)
        pthread_join(all[n], 0);
    PPT_BEGIN_NESTED(f) f.id = 99;
    return 0;
}
