/* waits: at `go`, threads that sleep, hand over to each other by a futex and by a pipe, compete for a
 * CPU, touch memory and call the kernel. Each prints the kernel's counts of it for that time:
 *   thread NAME TID FROM FROM_LATEST TO TO_LATEST VOLUNTARY INVOLUNTARY MINOR CALLS
 * with the times right before and right after both readings, ns of CLOCK_MONOTONIC. At `calls N`, the
 * main thread makes N further calls. A thread that is there before `go` is the sleeper. */
#define _GNU_SOURCE
#include "waits.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 200
#define PAGES 300

struct reading {
    long long before, after;
    struct rusage usage;
};

static sem_t go, turn[2];
static int pipes[2][2];
static int competing = 2;

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void take_reading(struct reading *it) {
    it->before = now();
    getrusage(RUSAGE_THREAD, &it->usage);
    it->after = now();
}

static void say(const char *name, const struct reading *a, const struct reading *b, long calls) {
    char line[256];
    int len = snprintf(line, sizeof line, "thread %s %ld %lld %lld %lld %lld %ld %ld %ld %ld\n", name,
                       (long)syscall(SYS_gettid), a->before, a->after, b->before, b->after,
                       b->usage.ru_nvcsw - a->usage.ru_nvcsw, b->usage.ru_nivcsw - a->usage.ru_nivcsw,
                       b->usage.ru_minflt - a->usage.ru_minflt, calls);
    if (write(1, line, (size_t)len) != len)
        exit(1);
}

static void *sleeper(void *arg) {
    struct reading a, b;
    (void)arg;
    while (sem_wait(&go) != 0) {
    }
    char *memory = mmap(0, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(1);
    madvise(memory, PAGES * 4096, MADV_NOHUGEPAGE);
    take_reading(&a);
    for (int n = 0; n < ROUNDS; n++) {
        struct timespec t = {0, 200000};
        nanosleep(&t, 0);
        PPT_WRITE_WORK(f) {
            f.n = n;
        }
        if (syscall(SYS_getppid) < 0)
            exit(1);
    }
    for (int page = 0; page < PAGES; page++)
        memory[page * 4096] = 1;
    take_reading(&b);
    say("sleeper", &a, &b, ROUNDS);
    munmap(memory, PAGES * 4096);
    return 0;
}

static void *futex(void *arg) {
    struct reading a, b;
    int me = arg != 0;
    take_reading(&a);
    for (int n = 0; n < ROUNDS; n++) {
        while (sem_wait(&turn[me]) != 0) {
        }
        sem_post(&turn[!me]);
    }
    take_reading(&b);
    say(me ? "futex1" : "futex0", &a, &b, 0);
    return 0;
}

static void *through_pipe(void *arg) {
    struct reading a, b;
    int me = arg != 0;
    char c = 'x';
    take_reading(&a);
    for (int n = 0; n < ROUNDS; n++)
        if (read(pipes[me][0], &c, 1) != 1 || write(pipes[!me][1], &c, 1) != 1)
            exit(1);
    take_reading(&b);
    say(me ? "pipe1" : "pipe0", &a, &b, ROUNDS);
    return 0;
}

/* Both on one CPU, which each gives up until both have lost it often, or have tried for long: neither
 * is alone there before. */
static void *competitor(void *arg) {
    struct reading a, b;
    struct rusage usage;
    cpu_set_t all, one;
    int done = 0, yields = 0;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof all, &all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cpu, &one);
            break;
        }
    sched_setaffinity(0, sizeof one, &one);
    take_reading(&a);
    do {
        sched_yield();
        getrusage(RUSAGE_THREAD, &usage);
        yields++;
        if (!done && (usage.ru_nivcsw - a.usage.ru_nivcsw >= 300 || yields >= 3000)) {
            done = 1;
            __atomic_fetch_sub(&competing, 1, __ATOMIC_SEQ_CST);
        }
    } while (__atomic_load_n(&competing, __ATOMIC_SEQ_CST) > 0 && yields < 6000);
    take_reading(&b);
    say(arg ? "competitor1" : "competitor0", &a, &b, 0);
    return 0;
}

int main(void) {
    pthread_t first, more[6];
    void *(*const what[])(void *) = {futex, futex, through_pipe, through_pipe, competitor, competitor};
    char line[64];
    sem_init(&go, 0, 0);
    sem_init(&turn[0], 0, 1);
    sem_init(&turn[1], 0, 0);
    if (pipe(pipes[0]) != 0 || pipe(pipes[1]) != 0 || pthread_create(&first, 0, sleeper, 0) != 0)
        return 1;
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        if (strncmp(line, "calls ", 6) == 0) {
            for (long n = atol(line + 6); n > 0; n--)
                syscall(SYS_getpgid, 0);
            puts("called");
        } else {
            sem_post(&go);
            for (long n = 0; n < 6; n++)
                if (pthread_create(&more[n], 0, what[n], n % 2 ? &go : 0) != 0)
                    return 1;
            if (write(pipes[0][1], "x", 1) != 1)
                return 1;
            for (int n = 0; n < 6; n++)
                pthread_join(more[n], 0);
            pthread_join(first, 0);
            puts("written 200");
        }
        fflush(stdout);
    }
    return 0;
}
