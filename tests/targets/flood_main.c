/* flood THREADS FRAMES: threads that live as long as the program. At each `go` each of them writes
 * FRAMES frames; from `start` to `stop`, as many as it can. Then it says how many frames it began
 * while somebody was attached (`written`), and how many of those got a sequence number
 * (`published`): ppt1_…_end is wrapped by the linker to count them. */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct worker {
    pthread_t id;
    uint64_t number, n, written, published;
};

static struct worker workers[64];
static uint64_t threads, frames;
static pthread_barrier_t begin, done;
static int endless, leave;
static __thread struct worker *self;

void REAL_END(ppt1_thread *t);
void WRAP_END(ppt1_thread *t);
void WRAP_END(ppt1_thread *t) {
    REAL_END(t);
    self->published++;
}

static void one(void) {
    PPT_WRITE_BEAT(f) {
        fill(&f, self->number, self->n);
        self->written++;
    }
    self->n++;
}

static void *work(void *arg) {
    self = arg;
    for (;;) {
        pthread_barrier_wait(&begin);
        if (leave)
            return 0;
        for (uint64_t i = 0; i < frames || __atomic_load_n(&endless, __ATOMIC_RELAXED); i++)
            one();
        pthread_barrier_wait(&done);
    }
}

/* Waits until every thread is through, and sums up. */
static void tell(void) {
    uint64_t written = 0, published = 0;
    pthread_barrier_wait(&done);
    for (uint64_t t = 0; t < threads; t++) {
        written += workers[t].written;
        published += workers[t].published;
        workers[t].written = workers[t].published = 0;
    }
    printf("written %lu\npublished %lu\n", (unsigned long)written, (unsigned long)published);
    fflush(stdout);
}

int main(int argc, char **argv) {
    char line[64];
    threads = argc > 1 ? strtoul(argv[1], 0, 10) : 1;
    frames = argc > 2 ? strtoul(argv[2], 0, 10) : 1000;
    pthread_barrier_init(&begin, 0, (unsigned)threads + 1);
    pthread_barrier_init(&done, 0, (unsigned)threads + 1);
    for (uint64_t t = 0; t < threads; t++) {
        workers[t].number = t;
        pthread_create(&workers[t].id, 0, work, &workers[t]);
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        if (strcmp(line, "stop\n") != 0) {
            __atomic_store_n(&endless, strcmp(line, "start\n") == 0, __ATOMIC_RELAXED);
            pthread_barrier_wait(&begin);
        }
        if (strcmp(line, "start\n") != 0) {
            __atomic_store_n(&endless, 0, __ATOMIC_RELAXED);
            tell();
        }
    }
    leave = 1;
    pthread_barrier_wait(&begin);
    for (uint64_t t = 0; t < threads; t++)
        pthread_join(workers[t].id, 0);
    return 0;
}
