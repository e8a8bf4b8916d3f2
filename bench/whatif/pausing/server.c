/* A server whose work can really be made faster, or be made so by pausing CPUs, in rounds of one run.
 *
 *     server CASE PERMUTATIONS ROUND_MS TICK_US
 *
 * All threads compute: so much work, however long they wait for a CPU. Prints a line for each arm: its name,
 * mean and 95th percentile of the time that a client waits for an answer in ns, answers in a second, and which
 * share of the pauses was paid. */
#include "pausing.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_CLIENTS 16
#define QUEUE 256
#define MOST_ANSWERS 4000000
#define SETTLES_NS 100000000 /* of each round; not measured */

static const struct program {
    const char *name;
    int clients, workers;
    double think_us, work_us, beside_us;
    int locked; /* clients work themselves, under one lock */
} programs[] = {
    {"1-1", 1, 1, 2000, 2000, 0, 0},        {"8-1", 8, 1, 10000, 2000, 0, 0},
    {"8-4", 8, 4, 2000, 2000, 0, 0},        {"lock", 4, 0, 2000, 2000, 0, 1},
    {"beside", 1, 1, 2000, 2000, 700, 0},
};
static const struct program *program;

static const struct arm {
    const char *name;
    double really, paused;
    enum told told;
    int weighs;
} arms[] = {
    {"base", 1, 1, 0, 0},
    {"base", 1, 1, 0, 0},
    {"real 1.25", 1.25, 1, 0, 0},
    {"real 2", 2, 1, 0, 0},
    {"paused 1.25", 1, 1.25, AT_BEGIN, 1},
    {"paused 2", 1, 2, AT_BEGIN, 1},
    {"told at the end 2", 1, 2, AT_END, 1},
    {"same weight 2", 1, 2, AT_BEGIN, 0},
};
#define ARMS (int)(sizeof arms / sizeof *arms)

struct answer {
    int64_t asked, got;
};

static double steps_in_ns;
static volatile uint64_t result;
static volatile double faster = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, shared = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some = PTHREAD_COND_INITIALIZER, more = PTHREAD_COND_INITIALIZER;
static pthread_cond_t done[MOST_CLIENTS];
static int queue[QUEUE], answered[MOST_CLIENTS], beside_waits;
static unsigned put, got;
static struct answer *answers;
static _Atomic uint64_t answer_count;

static __attribute__((noinline)) void compute(uint64_t steps) {
    uint64_t x = steps | 1;
    for (uint64_t i = 0; i < steps; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    result = x;
}

static void work(double us) { compute((uint64_t)(us * 1000 * steps_in_ns)); }

static void calibrate(void) {
    for (int i = 0; i < 40; i++) {
        struct timespec from, to;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
        compute(1000000);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
        double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
        steps_in_ns = fmax(steps_in_ns, 1e6 / ns);
    }
}

static uint64_t random_(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* Exponential, but at most four times the mean. */
static double around(uint64_t *state, double mean) {
    double u = (double)(random_(state) >> 11) / 9007199254740992.0;
    return fmin(-log(1 - u), 4) * mean;
}

static void interval(double us) {
    begin_interval();
    work(us / faster);
    end_interval();
}

static void *serve(void *unused) {
    register_thread();
    uint64_t seed = 77;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (put == got)
            pthread_cond_wait(&some, &lock);
        int client = queue[got++ % QUEUE];
        pthread_mutex_unlock(&lock);
        double us = around(&seed, program->work_us);
        if (program->beside_us > 0)
            work(us);
        else
            interval(us);
        pthread_mutex_lock(&lock);
        answered[client] = 1;
        pthread_cond_signal(&done[client]);
        beside_waits = 1;
        pthread_cond_signal(&more);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

/* Nobody waits for it. */
static void *beside(void *unused) {
    register_thread();
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!beside_waits)
            pthread_cond_wait(&more, &lock);
        beside_waits = 0;
        pthread_mutex_unlock(&lock);
        interval(program->beside_us);
    }
    return unused;
}

static void ask(int client) {
    pthread_mutex_lock(&lock);
    queue[put++ % QUEUE] = client;
    pthread_cond_signal(&some);
    while (!answered[client])
        pthread_cond_wait(&done[client], &lock);
    answered[client] = 0;
    pthread_mutex_unlock(&lock);
}

static void *client(void *number) {
    register_thread();
    int self = (int)(intptr_t)number;
    uint64_t seed = 1234 + 7919 * (uint64_t)self;
    for (;;) {
        work(around(&seed, program->think_us));
        struct answer it = {now_ns(), 0};
        if (program->locked) {
            pthread_mutex_lock(&shared);
            interval(program->work_us);
            pthread_mutex_unlock(&shared);
        } else {
            ask(self);
        }
        it.got = now_ns();
        uint64_t n = atomic_fetch_add(&answer_count, 1);
        if (n < MOST_ANSWERS)
            answers[n] = it;
    }
    return number;
}

static struct round {
    int64_t from, to;
    int arm;
} *rounds;
static int round_count;

static int by_value(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static void print(const char *name, struct payment paid) {
    static double lengths[MOST_ANSWERS];
    uint64_t all = answer_count < MOST_ANSWERS ? answer_count : MOST_ANSWERS;
    double sum = 0, time = 0;
    uint64_t count = 0;
    for (int n = 0; n < round_count; n++) {
        if (strcmp(arms[rounds[n].arm].name, name) != 0)
            continue;
        int64_t from = rounds[n].from + SETTLES_NS, to = rounds[n].to;
        time += virtual_time(to) - virtual_time(from);
        for (uint64_t i = 0; i < all; i++)
            if (answers[i].asked >= from && answers[i].got <= to) {
                lengths[count] = virtual_time(answers[i].got) - virtual_time(answers[i].asked);
                sum += lengths[count++];
            }
    }
    if (count == 0)
        return;
    qsort(lengths, count, sizeof *lengths, by_value);
    printf("%s\t%.0f\t%.0f\t%.2f\t%.3f\n", name, sum / (double)count, lengths[(uint64_t)(0.95 * (double)count)],
           (double)count / (time / 1e9), paid.owed > 0 ? paid.paid / paid.owed : 1);
}

/* Other programs of an ordinary priority leave the CPUs to this one, where the kernel groups by session. */
static void stand_out(void) {
    setsid();
    int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, "-20", 3) != 3)
        perror("/proc/self/autogroup");
    close(fd);
}

int main(int argc, char **argv) {
    for (unsigned n = 0; argc == 5 && n < sizeof programs / sizeof *programs; n++)
        if (strcmp(programs[n].name, argv[1]) == 0)
            program = &programs[n];
    if (!program) {
        fprintf(stderr, "usage: server 1-1|8-1|8-4|lock|beside PERMUTATIONS ROUND_MS TICK_US\n");
        return 2;
    }
    int permutations = atoi(argv[2]);
    double round_us = atof(argv[3]) * 1000;
    stand_out();
    calibrate();
    answers = mmap(NULL, sizeof *answers * MOST_ANSWERS, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    rounds = calloc((size_t)permutations * ARMS, sizeof *rounds);
    pthread_t thread;
    for (int n = 0; n < program->workers; n++)
        pthread_create(&thread, NULL, serve, NULL);
    if (program->beside_us > 0)
        pthread_create(&thread, NULL, beside, NULL);
    for (int n = 0; n < program->clients; n++) {
        pthread_cond_init(&done[n], NULL);
        pthread_create(&thread, NULL, client, (void *)(intptr_t)n);
    }
    usleep(300000);
    start_host(atoll(argv[4]) * 1000);
    struct payment paid[ARMS] = {{0, 0, 0}};
    uint64_t seed = (uint64_t)now_ns();
    for (int permutation = 0; permutation < permutations; permutation++) {
        int order[ARMS];
        for (int n = 0; n < ARMS; n++) {
            int other = (int)(random_(&seed) % (uint64_t)(n + 1));
            order[n] = order[other];
            order[other] = n;
        }
        for (int n = 0; n < ARMS; n++) {
            const struct arm *arm = &arms[order[n]];
            struct payment before = payment();
            struct round *round = &rounds[round_count++];
            *round = (struct round){now_ns(), 0, order[n]};
            faster = arm->really;
            if (arm->paused > 1)
                begin_pausing(arm->paused, arm->told, arm->weighs);
            usleep((useconds_t)round_us);
            round->to = arm->paused > 1 ? end_pausing() : now_ns();
            faster = 1;
            struct payment after = payment();
            paid[order[n]].owed += after.owed - before.owed;
            paid[order[n]].paid += after.paid - before.paid;
        }
    }
    for (int n = 1; n < ARMS; n++)
        print(arms[n].name, paid[n]);
    printf("tick\t%.0f\n", payment().tick_ns);
    fflush(stdout);
    _exit(0);
}
