/* How a benchmark is told what to do: commands on stdin, answers on stdout, each closed by `end`.
 *
 *   hello                      nothing: an answer says that the program runs
 *   measure                    every way in turn, in one thread: `WAY NS` a line
 *   write WAY COUNT THREADS    COUNT events in each thread, as fast as they can: `ns`, CPU time of a
 *                              thread an event; `rate`, events a second of all threads; `written`
 *   steady WAY RATE SECONDS    events at that rate: `written`, and ns of CPU time: `writer`,
 *                              `process` (all its threads)
 *   bursts WAY RATE ON PERIOD COUNT
 *                              COUNT times in PERIOD µs: events at RATE for ON µs, then none; `written`,
 *                              and `rate`, which was reached, events a second of a burst
 *   on WAY FILE, off           start and stop what collects inside of this process
 *   first WAY                  one event in a new thread: `first NS`, by the wall clock
 *   prepared WAY               the same after what the library offers to be ready
 *   block, unblock             a thread waits in epoll_wait; `eintr N`: how often that was interrupted
 *   spin, unspin               a thread looks at the clock; `gap NS`: the longest it did not,
 *                              `switches N`: how often another thread had its CPU meanwhile; as
 *                              a real-time thread where that is allowed: then none has
 *   churn, unspin              the same; between its looks it maps, touches and unmaps a page
 */
#ifndef BENCH_COMMANDS_H
#define BENCH_COMMANDS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

/* One way to write an event: a loop around it, so that its call is direct, as a user's would be. */
struct way {
    const char *name;
    void (*loop)(uint64_t from, uint64_t to);
    uint64_t count;         /* for `measure` */
    void (*prepare)(void);  /* or null */
};

/* What collects inside of the process, or nulls. `off` prints what it has to say. */
struct collecting {
    void (*on)(const char *way, const char *file);
    void (*off)(void);
};

#define LOOP_OVER(function)                                                                        \
    static void function##_calls(uint64_t from, uint64_t to) {                                     \
        for (uint64_t i = from; i < to; i++)                                                       \
            function(i);                                                                           \
    }

/* Warms up, pages included: two laps of a ring of 16,384. */
enum { WARM = 32768 };

static uint64_t clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* CPU time: what else runs on the machine shows as little as possible. */
static uint64_t thread_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

static void pin(unsigned thread) {
    cpu_set_t allowed, one;
    unsigned seen = 0;
    sched_getaffinity(getpid(), sizeof allowed, &allowed);
    if (CPU_COUNT(&allowed) == 0)
        return;
    thread %= (unsigned)CPU_COUNT(&allowed);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && seen++ == thread) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            pthread_setaffinity_np(pthread_self(), sizeof one, &one);
        }
}

static double measured(const struct way *way) {
    way->loop(0, WARM);
    uint64_t start = thread_ns();
    way->loop(0, way->count);
    return (double)(thread_ns() - start) / (double)way->count;
}

/* One of the threads of `write`. */
struct writing {
    const struct way *way;
    pthread_barrier_t *start;
    uint64_t count;
    unsigned number;
    uint64_t cpu, began, ended;
};

static void *writing_thread(void *argument) {
    struct writing *it = (struct writing *)argument;
    pin(it->number);
    it->way->loop(0, WARM);
    pthread_barrier_wait(it->start);
    it->began = clock_ns(CLOCK_MONOTONIC);
    uint64_t cpu = thread_ns();
    it->way->loop(WARM, WARM + it->count);
    it->cpu = thread_ns() - cpu;
    it->ended = clock_ns(CLOCK_MONOTONIC);
    return 0;
}

static void write_events(const struct way *way, uint64_t count, unsigned threads) {
    enum { MOST = 256 };
    static struct writing each[MOST];
    static pthread_t ids[MOST];
    pthread_barrier_t start;
    uint64_t cpu = 0, began = UINT64_MAX, ended = 0;
    if (threads < 1 || threads > MOST)
        return;
    pthread_barrier_init(&start, 0, threads);
    for (unsigned i = 0; i < threads; i++) {
        each[i] = (struct writing){way, &start, count, i, 0, 0, 0};
        if (pthread_create(&ids[i], 0, writing_thread, &each[i]) != 0)
            abort();
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], 0);
        cpu += each[i].cpu;
        began = each[i].began < began ? each[i].began : began;
        ended = each[i].ended > ended ? each[i].ended : ended;
    }
    printf("ns %.4f\n", (double)cpu / (double)(count * threads));
    printf("rate %.0f\n", (double)(count * threads) * 1e9 / (double)(ended - began));
    printf("written %llu\n", (unsigned long long)((count + WARM) * threads));
}

struct steady {
    const struct way *way;
    uint64_t rate, count, cpu;
};

/* A pause of a millisecond at most a thousand times a second, whatever the rate. */
static void *steady_thread(void *argument) {
    struct steady *it = (struct steady *)argument;
    uint64_t const step = it->rate > 1000 ? 1000000 : 1000000000 / it->rate;
    uint64_t const each = it->rate > 1000 ? it->rate / 1000 : 1;
    uint64_t next, cpu = thread_ns();
    int const single = it->rate <= 10000;
    pin(0);
    next = clock_ns(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < it->count;) {
        uint64_t const due = single ? 1 : each;
        next += single ? 1000000000 / it->rate : step;
        struct timespec until = {(time_t)(next / 1000000000), (long)(next % 1000000000)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0);
        it->way->loop(i, i + due);
        i += due;
    }
    it->cpu = thread_ns() - cpu;
    return 0;
}

static void write_steadily(const struct way *way, uint64_t rate, uint64_t seconds) {
    struct steady it = {way, rate, rate * seconds, 0};
    pthread_t thread;
    uint64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (rate == 0 || pthread_create(&thread, 0, steady_thread, &it) != 0)
        abort();
    pthread_join(thread, 0);
    cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("written %llu\n", (unsigned long long)it.count);
    printf("writer %llu\nprocess %llu\n", (unsigned long long)it.cpu, (unsigned long long)cpu);
}

struct bursts {
    const struct way *way;
    uint64_t rate, on_ns, period_ns, count, written, busy_ns;
};

/* Steps of 20 µs, for which it spins: a pause would take longer. */
static void *bursts_thread(void *argument) {
    struct bursts *it = (struct bursts *)argument;
    uint64_t const step_ns = 20000;
    pin(0);
    uint64_t start = clock_ns(CLOCK_MONOTONIC);
    for (uint64_t burst = 0; burst < it->count; burst++, start += it->period_ns) {
        struct timespec until = {(time_t)(start / 1000000000), (long)(start % 1000000000)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0);
        uint64_t begun = clock_ns(CLOCK_MONOTONIC), done = 0;
        for (uint64_t at = step_ns; at <= it->on_ns; at += step_ns) {
            uint64_t const due = at * it->rate / 1000000000;
            while (clock_ns(CLOCK_MONOTONIC) - begun + step_ns < at) {
            }
            it->way->loop(done, due);
            done = due;
        }
        it->busy_ns += clock_ns(CLOCK_MONOTONIC) - begun;
        it->written += done;
    }
    return 0;
}

static void write_bursts(const struct way *way, uint64_t rate, uint64_t on, uint64_t period,
                         uint64_t count) {
    struct bursts it = {way, rate, on * 1000, period * 1000, count, 0, 0};
    pthread_t thread;
    if (pthread_create(&thread, 0, bursts_thread, &it) != 0)
        abort();
    pthread_join(thread, 0);
    printf("written %llu\nrate %.0f\n", (unsigned long long)it.written,
           (double)it.written * 1e9 / (double)it.busy_ns);
}

/* A thread that does one thing until it is told to stop. */
static struct {
    pthread_t thread;
    int running, stop, wake, churn;
    uint64_t found, switches;
} aside;

static void *block_thread(void *nothing) {
    int const epoll = epoll_create1(0);
    struct epoll_event event = {EPOLLIN, {0}};
    (void)nothing;
    epoll_ctl(epoll, EPOLL_CTL_ADD, aside.wake, &event);
    while (epoll_wait(epoll, &event, 1, -1) < 0 && errno == EINTR)
        aside.found++;
    close(epoll);
    return 0;
}

static uint64_t switches(void) {
    struct rusage used;
    getrusage(RUSAGE_THREAD, &used);
    return (uint64_t)used.ru_nivcsw;
}

static void churn(void) {
    int const way = MAP_PRIVATE | MAP_ANONYMOUS;
    char *page = (char *)mmap(0, 4096, PROT_READ | PROT_WRITE, way, -1, 0);
    if (page == (char *)MAP_FAILED)
        abort();
    *page = 1;
    munmap(page, 4096);
}

static void *spin_thread(void *nothing) {
    struct sched_param const first = {1};
    (void)nothing;
    pin(0);
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
    uint64_t const before = switches();
    uint64_t last = clock_ns(CLOCK_MONOTONIC);
    while (!__atomic_load_n(&aside.stop, __ATOMIC_RELAXED)) {
        if (aside.churn)
            churn();
        uint64_t now = clock_ns(CLOCK_MONOTONIC);
        aside.found = now - last > aside.found ? now - last : aside.found;
        last = now;
    }
    aside.switches = switches() - before;
    return 0;
}

static void begin_aside(void *(*what)(void *)) {
    if (aside.running)
        return;
    aside.found = aside.switches = 0;
    aside.stop = 0;
    aside.wake = eventfd(0, 0);
    aside.running = pthread_create(&aside.thread, 0, what, 0) == 0;
}

static void end_aside(const char *name) {
    uint64_t const one = 1;
    if (!aside.running)
        return;
    __atomic_store_n(&aside.stop, 1, __ATOMIC_RELAXED);
    if (write(aside.wake, &one, sizeof one) != sizeof one)
        abort();
    pthread_join(aside.thread, 0);
    close(aside.wake);
    aside.running = 0;
    printf("%s %llu\n", name, (unsigned long long)aside.found);
    printf("switches %llu\n", (unsigned long long)aside.switches);
}

struct first {
    const struct way *way;
    int prepare;
    uint64_t ns;
};

static void *first_thread(void *argument) {
    struct first *it = (struct first *)argument;
    pin(0);
    if (it->prepare && it->way->prepare)
        it->way->prepare();
    uint64_t start = clock_ns(CLOCK_MONOTONIC);
    it->way->loop(0, 1);
    it->ns = clock_ns(CLOCK_MONOTONIC) - start;
    return 0;
}

static void write_first(const struct way *way, int prepare) {
    struct first it = {way, prepare, 0};
    pthread_t thread;
    if (pthread_create(&thread, 0, first_thread, &it) != 0)
        abort();
    pthread_join(thread, 0);
    printf("first %llu\n", (unsigned long long)it.ns);
}

static const struct way *way_named(const struct way *ways, const char *name) {
    for (; ways->name; ways++)
        if (strcmp(ways->name, name) == 0)
            return ways;
    fprintf(stderr, "no way is called %s\n", name);
    exit(2);
}

/* Until stdin ends. `ways` ends with a name that is null. */
static int serve(const struct way *ways, struct collecting collecting) {
    char line[4352], name[64], file[4096];
    unsigned long long first, second, third, fourth;
    while (fgets(line, sizeof line, stdin)) {
        if (strcmp(line, "measure\n") == 0) {
            for (const struct way *way = ways; way->name; way++)
                printf("%s %.4f\n", way->name, measured(way));
        } else if (sscanf(line, "write %63s %llu %llu", name, &first, &second) == 3) {
            write_events(way_named(ways, name), first, (unsigned)second);
        } else if (sscanf(line, "steady %63s %llu %llu", name, &first, &second) == 3) {
            write_steadily(way_named(ways, name), first, second);
        } else if (sscanf(line, "bursts %63s %llu %llu %llu %llu", name, &first, &second, &third,
                          &fourth) == 5) {
            write_bursts(way_named(ways, name), first, second, third, fourth);
        } else if (sscanf(line, "first %63s", name) == 1) {
            write_first(way_named(ways, name), 0);
        } else if (sscanf(line, "prepared %63s", name) == 1) {
            write_first(way_named(ways, name), 1);
        } else if (sscanf(line, "on %63s %4095s", name, file) == 2 && collecting.on) {
            collecting.on(name, file);
        } else if (strcmp(line, "off\n") == 0 && collecting.off) {
            collecting.off();
        } else if (strcmp(line, "hello\n") == 0) {
        } else if (strcmp(line, "block\n") == 0) {
            begin_aside(block_thread);
        } else if (strcmp(line, "unblock\n") == 0) {
            end_aside("eintr");
        } else if (strcmp(line, "spin\n") == 0 || strcmp(line, "churn\n") == 0) {
            aside.churn = *line == 'c';
            begin_aside(spin_thread);
        } else if (strcmp(line, "unspin\n") == 0) {
            end_aside("gap");
        } else {
            fprintf(stderr, "not a command: %s", line);
            return 2;
        }
        puts("end");
        fflush(stdout);
    }
    return 0;
}

#endif
