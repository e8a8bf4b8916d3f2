/* The writing part of exiting.c. */
#include "example.h"

int plugin_begin(int thread, int i, uint64_t *begun);

int plugin_begin(int thread, int i, uint64_t *begun) {
    PPT_WRITE_WORK(f) {
        /* before the frame is: what is captured was begun */
        __atomic_store_n(begun, *begun + 1, __ATOMIC_RELAXED);
        f.thread = thread;
        f.i = (uint64_t)i;
        f.mix = ((uint64_t)thread + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)i;
    }
    return 0;
}
