/* steady COUNTERS: does what the lines on stdin say, and counts in a file that outlives it.
 *
 *   burst N       writes N frames, says "written TOTAL"
 *   threads T N   the same from T threads, one after the other
 *   run           writes on and on from another thread, says "running"
 *   halt          ends that, says "written TOTAL"
 *   gate          says "gate 0" or "gate 1"
 *   page          says "page ADDRESS HASH" of the control page
 *   hide          is not dumpable from now on, says "hidden"
 *   allow         may be attached to by its user, says "allowed"
 *   exec PROGRAM  becomes another program
 */
#define _GNU_SOURCE
#include "steady.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Frames that found the gate open, and of those the ones that were written when this was. */
static struct {
    uint64_t begun, done;
} *counters;

static int running;

static void one(void) {
    PPT_WRITE_STEADY(f) {
        uint64_t n = counters->begun;
        f.n = n;
        f.twice = 2 * n;
        f.inverse = ~n;
        __atomic_store_n(&counters->begun, n + 1, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&counters->done, counters->begun, __ATOMIC_RELAXED);
}

static void *burst(void *count) {
    for (uintptr_t i = 0; i < (uintptr_t)count; i++)
        one();
    return 0;
}

static void *run(void *unused) {
    while (__atomic_load_n(&running, __ATOMIC_RELAXED)) {
        one();
        for (volatile int i = 0; i < 500; i++) /* no faster than a disk */
            ;
    }
    return unused;
}

static uint64_t page_hash(void) {
    const unsigned char *page = (const unsigned char *)&CONTROL;
    uint64_t hash = UINT64_C(14695981039346656037);
    for (unsigned i = 0; i < sizeof CONTROL; i++)
        hash = (hash ^ page[i]) * UINT64_C(1099511628211);
    return hash;
}

static void say_written(void) { printf("written %llu\n", (unsigned long long)counters->begun); }

int main(int argc, char **argv) {
    int fd = argc > 1 ? open(argv[1], O_RDWR) : -1;
    void *map = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return 1;
    counters = map;
    puts("ready");
    fflush(stdout);
    char line[4096];
    pthread_t thread;
    while (fgets(line, sizeof line, stdin)) {
        unsigned long threads, count;
        line[strcspn(line, "\n")] = 0;
        if (sscanf(line, "burst %lu", &count) == 1) {
            burst((void *)count);
            say_written();
        } else if (sscanf(line, "threads %lu %lu", &threads, &count) == 2) {
            for (; threads > 0; threads--) {
                pthread_create(&thread, 0, burst, (void *)count);
                pthread_join(thread, 0);
            }
            say_written();
        } else if (strcmp(line, "run") == 0) {
            running = 1;
            pthread_create(&thread, 0, run, 0);
            puts("running");
        } else if (strcmp(line, "halt") == 0) {
            __atomic_store_n(&running, 0, __ATOMIC_RELAXED);
            pthread_join(thread, 0);
            say_written();
        } else if (strcmp(line, "gate") == 0) {
            printf("gate %d\n", ppt_steady_on());
        } else if (strcmp(line, "page") == 0) {
            printf("page %llx %llx\n", (unsigned long long)(uintptr_t)&CONTROL,
                   (unsigned long long)page_hash());
        } else if (strcmp(line, "hide") == 0) {
            prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
            puts("hidden");
        } else if (strcmp(line, "allow") == 0) {
            ppt_allow_attach();
            puts("allowed");
        } else if (strncmp(line, "exec ", 5) == 0) {
            execl(line + 5, line + 5, (char *)0);
            return 2;
        }
        fflush(stdout);
    }
    return 0;
}
