/* wide THREADS: at the first line each thread writes one frame, one after the other, and the
 * program prints the most minor faults that one of these frames took; at the second each writes 100 more. */
#define _GNU_SOURCE
#include "wide.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MOST = 64, MORE = 100 };

static pthread_mutex_t one_by_one = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begin, done;
static long most;

static void write_one(uint64_t n) {
    PPT_WRITE_BLOCK(f) {
        f.n = n;
        memset(f.rest, (int)(n & 0xff), sizeof f.rest);
    }
}

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

static void *work(void *number) {
    uint64_t n = (uintptr_t)number * 1000;
    pthread_barrier_wait(&begin);
    pthread_mutex_lock(&one_by_one);
    long before = faults();
    write_one(n);
    long took = faults() - before;
    if (took > most)
        most = took;
    pthread_mutex_unlock(&one_by_one);
    pthread_barrier_wait(&done);
    pthread_barrier_wait(&begin);
    for (uint64_t i = 1; i <= MORE; i++)
        write_one(n + i);
    pthread_barrier_wait(&done);
    pthread_barrier_wait(&begin);
    return 0;
}

int main(int argc, char **argv) {
    pthread_t ids[MOST];
    char line[16];
    unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    pthread_barrier_init(&begin, 0, threads + 1);
    pthread_barrier_init(&done, 0, threads + 1);
    for (uintptr_t t = 0; t < threads; t++)
        pthread_create(&ids[t], 0, work, (void *)t);
    puts("ready");
    fflush(stdout);
    for (int round = 0; round < 2; round++) {
        if (fgets(line, sizeof line, stdin) == 0)
            return 1;
        pthread_barrier_wait(&begin);
        pthread_barrier_wait(&done);
        printf("faults %ld\nwritten %u\n", most, round == 0 ? threads : threads * (1 + MORE));
        fflush(stdout);
    }
    while (getchar() != EOF) {
    }
    pthread_barrier_wait(&begin);
    for (unsigned t = 0; t < threads; t++)
        pthread_join(ids[t], 0);
    return 0;
}
