/* choosing [THREADS]: at each line N, writes N rounds of everything and says how often each block ran, as
 * the program itself counts: `ran plain stamped job leg slot bytes waits`. With THREADS, from `start`
 * to `stop` each thread writes `plain` and `stamped`, and counts. */
#define _GNU_SOURCE
#include "choosing.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t n, plain, stamped, job, leg, slot, bytes, waits;
static int running;

static uint64_t counted(uint64_t *count) {
    ++*count;
    return n;
}

static void one(void) {
    n++;
    PPT_WRITE_PLAIN(f) { f.n = counted(&plain); }
    PPT_WRITE_STAMPED(f) {
        f.n = counted(&stamped);
        f.when = ppt_choosing_now();
    }
    PPT_BEGIN_JOB(f) { f.id = counted(&job); }
    PPT_STEP_LEG(LEAVE, f) { f.id = counted(&leg); }
    PPT_STEP_LEG(ARRIVE, f) { f.id = counted(&leg); }
    PPT_END_JOB(f) { f.id = counted(&job); }
    PPT_WRITE_SLOT(f) {
        counted(&slot);
        f.held_start = ppt_choosing_now();
        f.held_end = ppt_choosing_now();
    }
    PPT_ADD_BYTES((counted(&bytes), 1));
    PPT_OBSERVE_WAITS((counted(&waits), 5));
    /* The macro form: its frame keeps what was set last. */
    WRITE_PLAIN_N(n);
    WRITE_STAMPED_WHEN_TIMESTAMP();
}

static void *work(void *arg) {
    int thread = (int)(intptr_t)arg;
    struct timespec pause = {0, 200000};
    uint64_t of_plain = 0, of_stamped = 0;
    while (__atomic_load_n(&running, __ATOMIC_RELAXED)) {
        PPT_WRITE_PLAIN(f) {
            f.n = ++of_plain;
            f.thread = thread;
        }
        PPT_WRITE_STAMPED(f) { f.n = ++of_stamped; }
        nanosleep(&pause, 0);
    }
    __atomic_fetch_add(&plain, of_plain, __ATOMIC_RELAXED);
    __atomic_fetch_add(&stamped, of_stamped, __ATOMIC_RELAXED);
    return 0;
}

static void say(void) {
    printf("ran %lu %lu %lu %lu %lu %lu %lu\n", plain, stamped, job, leg, slot, bytes, waits);
    fflush(stdout);
    plain = stamped = job = leg = slot = bytes = waits = 0;
}

int main(int argc, char **argv) {
    char line[64];
    pthread_t crew[64];
    int threads = argc > 1 ? atoi(argv[1]) : 0;
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        if (strcmp(line, "start\n") == 0) {
            __atomic_store_n(&running, 1, __ATOMIC_RELAXED);
            for (int i = 0; i < threads; i++)
                pthread_create(&crew[i], 0, work, (void *)(intptr_t)i);
            continue;
        }
        if (strcmp(line, "stop\n") == 0) {
            __atomic_store_n(&running, 0, __ATOMIC_RELAXED);
            for (int i = 0; i < threads; i++)
                pthread_join(crew[i], 0);
        }
        for (int rounds = atoi(line); rounds > 0; rounds--)
            one();
        say();
    }
    return 0;
}
