/* A server whose work can really be made K times faster, with the same random numbers.
 *
 *     server open RATE WORKERS SERVICE_US K SECONDS SEED    jobs come by themselves, RATE a second
 *     server closed CLIENTS WORKERS SERVICE_US K SECONDS SEED   each client thinks, asks, and waits
 *
 * Times are exponential. Service and thinking are timed (they sleep). With SPIN=1 they compute: each takes so
 * much time of a CPU, however long it waits for one. With LOCKED=1, workers hold one lock while they work. With
 * INSIDE=SHARE, they hold one lock for this share in the middle of their work. With BESIDE=1, a thread of its own does
 * the work, for which nobody waits, and workers answer at once.
 *
 * Compiled with -DCOZ, the work is a loop on one line, as Coz samples lines and does not see who called the kernel. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "jobs.h"

#ifdef COZ
#include <coz.h>
#else
#define COZ_BEGIN(name)
#define COZ_END(name)
#endif

#define ROOM 65536
#define MOST_CLIENTS 64

static uint64_t queue[ROOM];
static unsigned put, got;
static int over;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER;
static pthread_cond_t done[MOST_CLIENTS];
static int answers[MOST_CLIENTS];

static int closed, spin, locked, beside;
static pthread_mutex_t during = PTHREAD_MUTEX_INITIALIZER;
static double service_ns, faster, mean_ns, inside;
static uint64_t seed;
static struct timespec end;

static uint64_t mixed(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The same for the same job, whatever happens meanwhile. */
static double exponential(uint64_t of, uint64_t job) {
    double u = (double)(mixed(mixed(seed + of) ^ job) >> 11) / 9007199254740992.0;
    return -log(1.0 - u);
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void until(int64_t ns) {
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static int64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* For `ns`: asleep, or on a CPU. */
static void take(int64_t ns) {
    if (!spin) {
        until(now_ns() + ns);
        return;
    }
    int64_t to = cpu_ns() + ns;
    while (cpu_ns() < to)
        ;
}

#ifdef COZ
static double turns_per_ns;

static void turn(uint64_t turns) {
    for (volatile uint64_t i = 0; i < turns; i++); /* the line of the work */
}

/* The best of several: other programs only slow it down. */
__attribute__((constructor)) static void calibrate(void) {
    for (int i = 0; i < 20; i++) {
        int64_t begin = cpu_ns();
        turn(10000000);
        turns_per_ns = fmax(turns_per_ns, 1e7 / (double)(cpu_ns() - begin));
    }
}

static void serve(int64_t ns) {
    turn((uint64_t)((double)ns * turns_per_ns));
}
#else
#define serve take
#endif

static int past(void) {
    return now_ns() >= end.tv_sec * 1000000000LL + end.tv_nsec;
}

static void ask(uint64_t job) {
    pthread_mutex_lock(&lock);
    PPT_WRITE_ASKED(f) { f.id = ppt_hash_u64(job); }
    queue[put++ % ROOM] = job;
    pthread_cond_signal(&some);
    pthread_mutex_unlock(&lock);
}

static void serve_locked(int64_t ns) {
    int64_t held = (int64_t)((double)ns * inside), before = (ns - held) / 2;
    serve(before);
    pthread_mutex_lock(&during);
    serve(held);
    pthread_mutex_unlock(&during);
    serve(ns - held - before);
}

static void work(uint64_t job) {
    int64_t ns = (int64_t)(service_ns * exponential(1, job) / faster);
    PPT_BEGIN_WORKING(f) { f.job = job; }
    WRITE_SERVE_JOB(job);
    WRITE_SERVE_WORK_START_TIMESTAMP();
    if (inside > 0)
        serve_locked(ns);
    else
        serve(ns);
    WRITE_SERVE_WORK_END_TIMESTAMP();
    ppt_write_serve_frame();
    PPT_END_WORKING(f) { f.job = job; }
}

/* Works, and rests as long, whatever the others do. */
static void *apart(void *unused) {
    for (uint64_t job = 0; !past(); job++) {
        work(job);
        until(now_ns() + (int64_t)(service_ns * exponential(3, job)));
    }
    return unused;
}

/* A job's number is its client's, and how many that had before. */
static void *worker(void *unused) {
    prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
    for (;;) {
        pthread_mutex_lock(&lock);
        while (put == got && !over)
            pthread_cond_wait(&some, &lock);
        if (put == got) {
            pthread_mutex_unlock(&lock);
            return unused;
        }
        uint64_t job = queue[got++ % ROOM];
        PPT_WRITE_TAKEN(f) { f.id = ppt_hash_u64(job); }
        pthread_mutex_unlock(&lock);
        if (beside) {
            take((int64_t)(service_ns * exponential(1, job)));
        } else {
            if (locked)
                pthread_mutex_lock(&during);
            work(job);
            if (locked)
                pthread_mutex_unlock(&during);
        }
        pthread_mutex_lock(&lock);
        PPT_WRITE_ANSWERED(f) { f.id = ppt_hash_u64(job); }
        if (closed) {
            answers[job >> 32] = 1;
            pthread_cond_signal(&done[job >> 32]);
        }
        pthread_mutex_unlock(&lock);
    }
}

static void *client(void *number) {
    prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
    uint64_t own = (uintptr_t)number;
    for (uint64_t n = 0; !past(); n++) {
        uint64_t job = own << 32 | n;
        take((int64_t)(mean_ns * exponential(2, job)));
        COZ_BEGIN("request");
        ask(job);
        pthread_mutex_lock(&lock);
        while (!answers[own])
            pthread_cond_wait(&done[own], &lock);
        answers[own] = 0;
        PPT_WRITE_GOT(f) { f.id = ppt_hash_u64(job); }
        COZ_END("request");
        pthread_mutex_unlock(&lock);
    }
    return number;
}

int main(int argc, char **argv) {
    if (argc != 8) {
        fprintf(stderr, "usage: server open|closed RATE|CLIENTS WORKERS SERVICE_US K SECONDS SEED\n");
        return 2;
    }
    closed = strcmp(argv[1], "closed") == 0;
    spin = getenv("SPIN") != NULL;
    locked = getenv("LOCKED") != NULL;
    beside = getenv("BESIDE") != NULL;
    inside = getenv("INSIDE") ? atof(getenv("INSIDE")) : 0;
    double load = atof(argv[2]);
    int workers = atoi(argv[3]), clients = closed ? (int)load : 0;
    service_ns = atof(argv[4]) * 1000;
    faster = atof(argv[5]);
    mean_ns = closed ? 10 * 1e6 : 1e9 / load;
    seed = strtoull(argv[7], NULL, 10);
    pthread_t threads[2 * MOST_CLIENTS], other;
    int count = 0;
    if (clients > MOST_CLIENTS || workers > MOST_CLIENTS || workers < 1)
        return 2;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += atoi(argv[6]);
    for (int i = 0; i < MOST_CLIENTS; i++)
        pthread_cond_init(&done[i], NULL);
    if (beside)
        pthread_create(&other, NULL, apart, NULL);
    for (int i = 0; i < workers; i++)
        pthread_create(&threads[count++], NULL, worker, NULL);
    for (uintptr_t i = 0; i < (uintptr_t)clients; i++)
        pthread_create(&threads[count++], NULL, client, (void *)i);
    if (!closed) {
        prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
        int64_t next = now_ns();
        for (uint64_t job = 0; !past(); job++) {
            next += (int64_t)(mean_ns * exponential(2, job));
            until(next);
            ask(job);
        }
    }
    for (int i = workers; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_lock(&lock);
    over = 1;
    pthread_cond_broadcast(&some);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < workers; i++)
        pthread_join(threads[i], NULL);
    if (beside)
        pthread_join(other, NULL);
    return 0;
}
