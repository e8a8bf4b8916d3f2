/* What calls, switches and faults cost this program, in rounds, until stdin is closed: `call NS`,
 * `switch NS` and `fault NS` a line for each round, wall time of one, after each line on stdin.
 * It has a ppt buffer, so that ppt can attach to it, and writes one frame a round. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "calls.h"
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 200000, SWITCHES = 20000, FAULTS = 20000 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double calls(void) {
    double const start = now();
    for (int i = 0; i < CALLS; i++)
        syscall(SYS_getppid);
    return (now() - start) / CALLS;
}

/* Two threads hand a word to each other, on one CPU: each hand-over is a switch. */
static int turn;

static void hand_over(int from, int to) {
    for (int i = 0; i < SWITCHES / 2; i++) {
        int seen;
        while ((seen = __atomic_load_n(&turn, __ATOMIC_ACQUIRE)) != from)
            syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, seen, 0, 0, 0);
        __atomic_store_n(&turn, to, __ATOMIC_RELEASE);
        syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    }
}

static void *other(void *unused) {
    hand_over(1, 0);
    return unused;
}

static double switches(void) {
    pthread_t thread;
    double const start = now();
    if (pthread_create(&thread, 0, other, 0) != 0)
        abort();
    hand_over(0, 1);
    pthread_join(thread, 0);
    return (now() - start) / SWITCHES;
}

static double faults(void) {
    size_t const size = (size_t)FAULTS * 4096;
    char *all = (char *)mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == (char *)MAP_FAILED)
        abort();
    madvise(all, size, MADV_NOHUGEPAGE);
    double const start = now();
    for (size_t at = 0; at < size; at += 4096)
        *(volatile char *)(all + at) = 1;
    double const one = (now() - start) / FAULTS;
    munmap(all, size);
    return one;
}

int main(void) {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof first, &first);
    uint64_t round = 0;
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
        PPT_WRITE_ROUND(f) { f.number = round; }
        round++;
        printf("call %.1f\n", calls());
        printf("switch %.1f\n", switches());
        printf("fault %.1f\nend\n", faults());
        fflush(stdout);
    }
    return 0;
}
