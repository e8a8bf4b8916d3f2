/* reasons: at `go`, jobs that wait for what is known, some of each kind: a sleep, a futex and a pipe that
 * another thread has in its hands, and a CPU that another thread keeps busy. Prints `who KIND TID OTHER`
 * for each kind (OTHER: the thread that is behind it, or 0), then `written N`; before that `first 1` if the
 * thread that is behind the last kind may take the CPU from others. */
#define _GNU_SOURCE
#include "reasons.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 5
#define PREEMPTED 40

static pthread_barrier_t begin[2];
static sem_t turn;
static int pipes[2], done, started, is_first;
static long tids[6], written;

static int tid(void) { return (int)syscall(SYS_gettid); }

static void rest(void) {
    struct timespec t = {0, 100000000};
    while (nanosleep(&t, &t) != 0) {
    }
}

static void job(int what, long long since) {
    PPT_WRITE_JOB(f) {
        f.what = (unsigned char)what;
        f.thread = tid();
        f.wait_start = since;
        f.wait_end = ppt_reasons_now();
        __atomic_fetch_add(&written, 1, __ATOMIC_SEQ_CST);
    }
}

static void *sleeper(void *arg) {
    tids[0] = tid();
    for (int n = 0; n < ROUNDS; n++) {
        long long since = ppt_reasons_now();
        rest();
        job(REASONS_WHAT_SLEEP, since);
    }
    return arg;
}

/* 1: by a futex, 2: by a pipe. */
static void *waiter(void *arg) {
    int is_pipe = arg != 0;
    char c;
    tids[is_pipe ? 3 : 1] = tid();
    for (int n = 0; n < ROUNDS; n++) {
        pthread_barrier_wait(&begin[is_pipe]);
        long long since = ppt_reasons_now();
        if (is_pipe) {
            if (read(pipes[0], &c, 1) != 1)
                exit(1);
        } else {
            while (sem_wait(&turn) != 0) {
            }
        }
        job(is_pipe ? REASONS_WHAT_PIPE : REASONS_WHAT_FUTEX, since);
    }
    return 0;
}

static void *giver(void *arg) {
    int is_pipe = arg != 0;
    tids[is_pipe ? 4 : 2] = tid();
    for (int n = 0; n < ROUNDS; n++) {
        pthread_barrier_wait(&begin[is_pipe]);
        long long since = ppt_reasons_now();
        rest();
        if (is_pipe ? write(pipes[1], "x", 1) != 1 : sem_post(&turn) != 0)
            exit(1);
        PPT_WRITE_GIVE(f) {
            f.what = is_pipe ? REASONS_WHAT_PIPE : REASONS_WHAT_FUTEX;
            f.thread = tid();
            f.hold_start = since;
            f.hold_end = ppt_reasons_now();
            __atomic_fetch_add(&written, 1, __ATOMIC_SEQ_CST);
        }
    }
    return 0;
}

/* Both on one CPU. */
static void pin(void) {
    cpu_set_t all, one;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof all, &all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cpu, &one);
            break;
        }
    sched_setaffinity(0, sizeof one, &one);
}

/* If it may, it takes the CPU from whoever has it, again and again. Otherwise, it is one of those that
 * share it. */
static void *neighbour(void *arg) {
    struct sched_param first = {.sched_priority = 1};
    struct timespec t = {0, 2000000};
    pin();
    tids[5] = tid();
    is_first = sched_setscheduler(0, SCHED_FIFO, &first) == 0;
    __atomic_store_n(&started, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST)) {
        if (!is_first)
            continue;
        nanosleep(&t, 0);
        for (long long since = ppt_reasons_now(); ppt_reasons_now() - since < 1000000;) {
        }
    }
    return arg;
}

static long busy(void) {
    struct rusage first, usage;
    pin();
    while (!__atomic_load_n(&started, __ATOMIC_SEQ_CST))
        sched_yield();
    long long since = ppt_reasons_now();
    getrusage(RUSAGE_THREAD, &first);
    /* Most of it is in a phase. */
    for (int part = 3; part <= 4; part++) {
        long long begin = ppt_reasons_now();
        do {
            for (volatile int n = 0; n < 1000000; n++) {
            }
            getrusage(RUSAGE_THREAD, &usage);
        } while (usage.ru_nivcsw - first.ru_nivcsw < PREEMPTED * part / 4);
        if (part == 3)
            PPT_WRITE_PHASE(f) {
                f.thread = tid();
                f.crunch_start = begin;
                f.crunch_end = ppt_reasons_now();
                __atomic_fetch_add(&written, 1, __ATOMIC_SEQ_CST);
            }
    }
    job(REASONS_WHAT_BUSY, since);
    __atomic_store_n(&done, 1, __ATOMIC_SEQ_CST);
    return tid();
}

static void *worker(void *arg) {
    *(long *)arg = busy();
    return 0;
}

int main(void) {
    pthread_t threads[7];
    long working = 0;
    char line[64];
    if (pipe(pipes) != 0)
        return 1;
    sem_init(&turn, 0, 0);
    pthread_barrier_init(&begin[0], 0, 2);
    pthread_barrier_init(&begin[1], 0, 2);
    puts("ready");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == 0)
        return 0;
    pthread_create(&threads[0], 0, sleeper, 0);
    pthread_create(&threads[1], 0, waiter, 0);
    pthread_create(&threads[2], 0, giver, 0);
    pthread_create(&threads[3], 0, waiter, &turn);
    pthread_create(&threads[4], 0, giver, &turn);
    pthread_create(&threads[5], 0, neighbour, 0);
    pthread_create(&threads[6], 0, worker, &working);
    for (int n = 0; n < 7; n++)
        pthread_join(threads[n], 0);
    printf("first %d\n", is_first);
    printf("who SLEEP %ld 0\nwho FUTEX %ld %ld\nwho PIPE %ld %ld\nwho BUSY %ld %ld\nwritten %ld\n", tids[0],
           tids[1], tids[2], tids[3], tids[4], working, tids[5], written);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
    }
    return 0;
}
