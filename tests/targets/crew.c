/* The part of a program, or the library, or the plugin, that writes: four threads. */
#include "matrix.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 500 };

unsigned long crew(void);

static unsigned long written[THREADS];

static void *work(void *number) {
    int thread = (int)(intptr_t)number;
    written[thread] = 0;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        PPT_WRITE_CREW(f) {
            f.thread = thread;
            f.i = i;
            f.mix = ((uint64_t)thread + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ i;
        }
        written[thread]++;
    }
    return 0;
}

unsigned long crew(void) {
    pthread_t ids[THREADS];
    unsigned long sum = 0;
    for (intptr_t t = 0; t < THREADS; t++)
        pthread_create(&ids[t], 0, work, (void *)t);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(ids[t], 0);
        sum += written[t];
    }
    return sum;
}
