/* A client and a worker take turns, until stdin ends: `pairs THINK_US WORK_US [sleep|nice|lock]`. Both compute for so
 * long, however long they wait for a CPU. `sleep`: the client sleeps instead. `nice`: the worker has a nice value of its
 * own. `lock`: instead of them, three threads think and work, and hold a lock while they compute within their work. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pairs.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int asked, answered;
static long long think_ns, work_ns;
static const char *mode = "";

static void compute_for(long long ns) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    long long end = t.tv_sec * 1000000000LL + t.tv_nsec + ns;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    while (t.tv_sec * 1000000000LL + t.tv_nsec < end);
}

static void *work(void *unused) {
    if (strcmp(mode, "nice") == 0)
        setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 1);
    for (uint64_t id = 0;; id++) {
        pthread_mutex_lock(&lock);
        while (!asked)
            pthread_cond_wait(&changed, &lock);
        asked = 0;
        pthread_mutex_unlock(&lock);
        PPT_BEGIN_WORK(f) { f.id = id; }
        compute_for(work_ns);
        PPT_END_WORK(f) { f.id = id; }
        pthread_mutex_lock(&lock);
        answered = 1;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void *work_locked(void *first) {
    for (uint64_t id = (uintptr_t)first;; id += 3) {
        compute_for(think_ns);
        PPT_BEGIN_REQUEST(f) { f.id = id; }
        PPT_BEGIN_WORK(f) { f.id = id; }
        pthread_mutex_lock(&lock);
        compute_for(work_ns);
        pthread_mutex_unlock(&lock);
        PPT_END_WORK(f) { f.id = id; }
        PPT_END_REQUEST(f) { f.id = id; }
    }
    return first;
}

static void wait_for_end(void) {
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
}

int main(int argc, char **argv) {
    think_ns = argc > 1 ? atoll(argv[1]) * 1000 : 2000000;
    work_ns = argc > 2 ? atoll(argv[2]) * 1000 : 6000000;
    mode = argc > 3 ? argv[3] : "";
    int is_locked = strcmp(mode, "lock") == 0;
    pthread_t worker;
    for (uintptr_t number = 0; number < (is_locked ? 3 : 1); number++)
        pthread_create(&worker, NULL, is_locked ? work_locked : work, (void *)number);
    puts("ready");
    fflush(stdout);
    if (is_locked) {
        wait_for_end();
        return 0;
    }
    for (uint64_t id = 0;; id++) {
        struct pollfd in = {0, POLLIN, 0};
        char byte;
        if (poll(&in, 1, 0) > 0 && read(0, &byte, 1) <= 0)
            return 0;
        if (strcmp(mode, "sleep") == 0)
            usleep((useconds_t)(think_ns / 1000));
        else
            compute_for(think_ns);
        PPT_BEGIN_REQUEST(f) { f.id = id; }
        pthread_mutex_lock(&lock);
        asked = 1;
        pthread_cond_broadcast(&changed);
        while (!answered)
            pthread_cond_wait(&changed, &lock);
        answered = 0;
        pthread_mutex_unlock(&lock);
        PPT_END_REQUEST(f) { f.id = id; }
    }
}
