/* errands_main THREADS ROUNDS: each thread begins errands, and ends those of the one before it. */
#define _GNU_SOURCE
#include "errands.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int threads, rounds;
static pthread_barrier_t all_have_begun;

static void take_in(int thread, int i) {
    char name[32];
    PPT_BEGIN_ERRAND(f) {
        f.id = (uint64_t)thread << 32 | (unsigned)i;
        f.thread = thread;
        f.verb = i % 2 ? ERRANDS_VERB_PUT : ERRANDS_VERB_GET;
    }
    PPT_STEP_LEG(LEAVE, f) {
        f.id = (uint64_t)thread << 32 | (unsigned)i;
        f.thread = thread;
    }
    snprintf(name, sizeof name, "%d-%d", thread, i);
    WRITE_VISIT_NAME(name);
    WRITE_VISIT_THREAD(thread);
    WRITE_VISIT_WHEN(1000 + i);
    ppt_begin_visit_frame();
}

static void done(int thread, int of, int i) {
    char name[32];
    WRITE_LEG_ID((uint64_t)of << 32 | (unsigned)i);
    WRITE_LEG_THREAD(thread);
    for (uint8_t step = ERRANDS_LEG_PASS_; step <= ERRANDS_LEG_ARRIVE; step++)
        ppt_step_leg_frame(step);
    snprintf(name, sizeof name, "%d-%d", of, i);
    WRITE_VISIT_NAME(name);
    WRITE_VISIT_THREAD(thread);
    WRITE_VISIT_WHEN(2000 + i);
    ppt_end_visit_frame();
    PPT_END_ERRAND(f) {
        f.bytes = (unsigned)i * 7;
        f.thread = thread;
        f.id = (uint64_t)of << 32 | (unsigned)i;
    }
}

static void *work(void *argument) {
    int thread = (int)(intptr_t)argument;
    for (int i = 0; i < rounds; i++)
        take_in(thread, i);
    pthread_barrier_wait(&all_have_begun);
    for (int i = 0; i < rounds; i++)
        done(thread, (thread + threads - 1) % threads, i);
    PPT_WRITE_IDLE(f) f.thread = thread;
    return 0;
}

int main(int argc, char **argv) {
    threads = argc > 1 ? atoi(argv[1]) : 1;
    rounds = argc > 2 ? atoi(argv[2]) : 1000;
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    pthread_t crew[64];
    pthread_barrier_init(&all_have_begun, 0, (unsigned)threads);
    for (int thread = 0; thread < threads; thread++)
        pthread_create(&crew[thread], 0, work, (void *)(intptr_t)thread);
    for (int thread = 0; thread < threads; thread++)
        pthread_join(crew[thread], 0);
    printf("written %d\n", threads * (7 * rounds + 1));
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
