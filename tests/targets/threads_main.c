/* threads TOTAL TOGETHER FRAMES [locked]: at `go`, TOTAL threads one after another, TOGETHER of them alive
 * at a time, write FRAMES frames each. A frame's `thread` is the kernel's number of the thread.
 * `locked`: all memory is locked. */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t frames, written;
static pthread_barrier_t all;

static void *work(void *arg) {
    uint64_t tid = (uint64_t)syscall(SYS_gettid), count = 0;
    (void)arg;
    for (uint64_t n = 0; n < frames; n++) {
        errno = 12345;
        PPT_WRITE_BEAT(f) {
            fill(&f, tid, n);
            count++;
        }
        if (errno != 12345) {
            puts("errno was changed");
            exit(1);
        }
    }
    __atomic_fetch_add(&written, count, __ATOMIC_RELAXED);
    pthread_barrier_wait(&all);
    return 0;
}

int main(int argc, char **argv) {
    unsigned long total = argc > 1 ? strtoul(argv[1], 0, 10) : 1;
    unsigned together = argc > 2 ? (unsigned)strtoul(argv[2], 0, 10) : 1;
    frames = argc > 3 ? strtoul(argv[3], 0, 10) : 1;
    pthread_t ids[128];
    char line[16];
    if (argc > 4 && mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        puts("not locked");
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        written = 0;
        for (unsigned long done = 0; done < total; done += together) {
            pthread_barrier_init(&all, 0, together);
            for (unsigned i = 0; i < together; i++)
                if (pthread_create(&ids[i], 0, work, 0) != 0)
                    return 1;
            for (unsigned i = 0; i < together; i++)
                pthread_join(ids[i], 0);
            pthread_barrier_destroy(&all);
        }
        printf("written %lu\n", (unsigned long)written);
        fflush(stdout);
    }
    return 0;
}
