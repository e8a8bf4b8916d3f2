/* idle THREADS: THREADS threads, which live until stdin ends, and write a frame each at `go`. */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_barrier_t begin, end;

static void *work(void *arg) {
    for (uint64_t n = 0;; n++) {
        pthread_barrier_wait(&begin);
        PPT_WRITE_BEAT(f) {
            fill(&f, (uint64_t)(uintptr_t)arg, n);
        }
        pthread_barrier_wait(&end);
    }
    return 0;
}

int main(int argc, char **argv) {
    unsigned const threads = argc > 1 ? (unsigned)strtoul(argv[1], 0, 10) : 1;
    pthread_barrier_init(&begin, 0, threads + 1);
    pthread_barrier_init(&end, 0, threads + 1);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (unsigned i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, work, (void *)(uintptr_t)i) != 0)
            return 1;
    }
    char line[16];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&end);
        printf("written %u\n", threads);
        fflush(stdout);
    }
    return 0;
}
