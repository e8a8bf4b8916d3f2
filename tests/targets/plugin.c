/* A library, or a part of a program, that writes into a buffer `example` of its own. WRITE is the
 * name of its function, RIGHT says which of the two frame files it has. */
#include "example.h"
#include <stdio.h>

#ifndef WRITE
#define WRITE plugin_write
#endif

void WRITE(int thread, int i);

void WRITE(int thread, int i) {
    PPT_WRITE_WORK(f) {
        f.thread = thread;
#ifdef RIGHT
        f.i = (uint32_t)i;
        f.half = i * 0.5;
        f.minus = -i;
        snprintf(f.text, sizeof f.text, "right %d", i % 10000);
#else
        f.i = (uint64_t)i;
        f.mix = ((uint64_t)thread + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)i;
#endif
    }
}
