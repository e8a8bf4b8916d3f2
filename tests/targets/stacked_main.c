/* stacked: works in two functions, seven tenths of its time in `heavy_work` and the rest in `light_work`.
 *
 *   work MS       the main thread works for MS ms of its CPU time
 *   young MS      a new thread works for MS ms, and is joined
 *   wait N        a new thread waits N times, in `wait_here`
 *   quit
 *
 * Each is answered by `done TID HEAVY_NS LIGHT_NS VOLUNTARY` of the thread: the CPU time in each function,
 * and how often it waited. PLAIN: without frames. */
#define _GNU_SOURCE
#ifndef PLAIN
#include "stacked.h"
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OUTLINE __attribute__((noinline, noclone))

static volatile unsigned sink;

static long long cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

OUTLINE static void heavy_work(unsigned rounds) {
    for (unsigned n = 0; n < rounds; n++)
        sink += n;
}

OUTLINE static void light_work(unsigned rounds) {
    for (unsigned n = 0; n < rounds; n++)
        sink -= n;
}

/* The call itself is in this function, so that its frame is the innermost one. */
OUTLINE static void wait_here(void) {
    struct timespec t = {0, 200000};
#ifdef __x86_64__
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"((long)SYS_nanosleep), "D"(&t), "S"(0L)
                     : "rcx", "r11", "memory");
#else
    nanosleep(&t, 0);
#endif
}

OUTLINE static void work(long ms, long long *heavy, long long *light) {
    long long begin = cpu_ns();
    unsigned number = 0;
    while (cpu_ns() - begin < ms * 1000000LL) {
        long long at[3];
#ifndef PLAIN
        PPT_WRITE_JOB(f) {
            f.number = number;
            f.work_start = ppt_stacked_now();
#endif
            at[0] = cpu_ns();
            heavy_work(7000000);
            at[1] = cpu_ns();
            light_work(3000000);
            at[2] = cpu_ns();
            *heavy += at[1] - at[0];
            *light += at[2] - at[1];
#ifndef PLAIN
            f.work_end = ppt_stacked_now();
        }
#endif
        number++;
    }
}

static void answer(long long heavy, long long light) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    printf("done %ld %lld %lld %ld\n", syscall(SYS_gettid), heavy, light, usage.ru_nvcsw);
    fflush(stdout);
}

static long ms, waits;

OUTLINE static void *begin(void *arg) {
    long long heavy = 0, light = 0;
    for (long n = 0; n < waits; n++)
        wait_here();
    if (ms > 0)
        work(ms, &heavy, &light);
    answer(heavy, light);
    return arg;
}

static void in_a_thread(void) {
    pthread_t thread;
    if (pthread_create(&thread, 0, begin, 0) != 0 || pthread_join(thread, 0) != 0)
        exit(1);
}

int main(void) {
    char line[64], word[16];
    long number;
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && sscanf(line, "%15s %ld", word, &number) == 2) {
        ms = waits = 0;
        if (strcmp(word, "work") == 0) {
            long long heavy = 0, light = 0;
            work(number, &heavy, &light);
            answer(heavy, light);
        } else if (strcmp(word, "young") == 0) {
            ms = number;
            in_a_thread();
        } else if (strcmp(word, "wait") == 0) {
            waits = number;
            in_a_thread();
        }
    }
    return 0;
}
