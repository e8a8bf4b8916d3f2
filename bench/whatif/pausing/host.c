/* While the interval runs on a CPU, every other CPU that runs a thread owes the share 1 - 1/k of that time. A
 * thread of the highest real-time priority, pinned on each CPU, pays: it computes, so nobody else runs there. */
#include "pausing.h"

#include <linux/perf_event.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_CPUS 8
#define MOST_THREADS 64
#define ROOM 4096      /* ends of a thread's intervals between two looks */
#define HISTORY 65536  /* switches of a CPU that are remembered */
#define SEGMENTS 200000 /* stretches in which the interval ran, of a round */
#define RING (64 * 4096)
#define LONGEST_PAUSE 5000000
#define LATE_NS 60000000 /* what ends so long after a round still belongs to it */

struct stretch {
    int64_t from, to;
};

struct thread {
    int tid;
    _Atomic int64_t begun; /* 0: not in the interval */
    _Atomic uint64_t ended;
    struct stretch ends[ROOM];
    uint64_t seen;   /* the host's: of `ended` */
    int64_t settled; /* the host's: up to here */
    int nice;
};

struct on_cpu {
    int64_t from;
    int tid, before;
};

struct cpu {
    struct perf_event_mmap_page *ring;
    uint64_t read, switches;
    struct on_cpu history[HISTORY];
    int payer, runs, before; /* the payer's tid, who runs, who ran before */
    double debt, owed, paid;
    uint64_t ticks;
    pthread_t thread;
};

static struct thread threads[MOST_THREADS];
static _Atomic int thread_count;
static __thread struct thread *own;

/* The rest is the host's, under `lock`. It is no spinning one: its holder may be preempted. */
static pthread_mutex_t lock;
static struct cpu cpus[MOST_CPUS];
static int cpu_count;
static int64_t tick;
static double share; /* 1 - 1/k */
static int steps;    /* of weight: log k to the base of 1.25 */
static enum told told;
static struct stretch round_;
/* When the interval ran on any CPU: sorted, disjoint. */
static struct stretch segments[SEGMENTS];
static int segment_count;
/* G at the ends of such stretches, of all rounds. */
static struct {
    int64_t t;
    double g;
} *clock_points;
static uint64_t point_count;

void register_thread(void) {
    int n = atomic_fetch_add(&thread_count, 1);
    threads[n].tid = (int)syscall(SYS_gettid);
    own = &threads[n];
}

void begin_interval(void) { atomic_store_explicit(&own->begun, now_ns(), memory_order_release); }

void end_interval(void) {
    uint64_t n = atomic_load_explicit(&own->ended, memory_order_relaxed);
    own->ends[n % ROOM] = (struct stretch){own->begun, now_ns()};
    atomic_store_explicit(&own->ended, n + 1, memory_order_release);
    atomic_store_explicit(&own->begun, 0, memory_order_release);
}

static void failed(const char *what) {
    perror(what);
    exit(1);
}

static struct perf_event_mmap_page *switches_of(int cpu) {
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
        .sample_id_all = 1,
        .context_switch = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        failed("perf_event_open");
    void *ring = mmap(NULL, 4096 + RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED)
        failed("mmap");
    return ring;
}

static void read_switches(struct cpu *cpu) {
    /* Of a record of all CPUs: header, other thread's pid and tid, own pid and tid, time. */
    struct {
        struct perf_event_header header;
        uint32_t other[2], self[2];
        uint64_t time;
    } record;
    const char *bytes = (const char *)cpu->ring + 4096;
    uint64_t head = __atomic_load_n(&cpu->ring->data_head, __ATOMIC_ACQUIRE);
    while (cpu->read < head) {
        for (unsigned i = 0; i < sizeof record; i++)
            ((char *)&record)[i] = bytes[(cpu->read + i) % RING];
        cpu->read += record.header.size;
        if (record.header.type == PERF_RECORD_LOST) {
            fprintf(stderr, "the kernel lost switches\n");
            exit(1);
        }
        if (record.header.type != PERF_RECORD_SWITCH_CPU_WIDE ||
            (record.header.misc & PERF_RECORD_MISC_SWITCH_OUT))
            continue;
        cpu->before = cpu->runs;
        cpu->runs = (int)record.self[1];
        cpu->history[cpu->switches++ % HISTORY] =
            (struct on_cpu){(int64_t)record.time, cpu->runs, cpu->before};
    }
    __atomic_store_n(&cpu->ring->data_tail, cpu->read, __ATOMIC_RELEASE);
}

/* The switch at or before `t`. */
static uint64_t switch_at(const struct cpu *cpu, int64_t t) {
    uint64_t low = cpu->switches > HISTORY ? cpu->switches - HISTORY : 0, high = cpu->switches;
    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;
        if (cpu->history[middle % HISTORY].from <= t)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The next part of `of` in which one thread had the CPU, from switch `*at` on; whose thread that is: the
 * payer's time is that of whom it preempted. */
static int next_part(const struct cpu *cpu, struct stretch of, uint64_t *at, struct stretch *part, int *tid) {
    for (; *at < cpu->switches; ++*at) {
        const struct on_cpu *it = &cpu->history[*at % HISTORY];
        int64_t to = *at + 1 < cpu->switches ? cpu->history[(*at + 1) % HISTORY].from : of.to;
        part->from = it->from > of.from ? it->from : of.from;
        part->to = to < of.to ? to : of.to;
        *tid = it->tid == cpu->payer ? it->before : it->tid;
        if (it->from >= of.to)
            return 0;
        if (part->from < part->to) {
            ++*at;
            return 1;
        }
    }
    return 0;
}

/* The interval ran in `of` on `runner`, and nobody knew yet. An idle CPU owes nothing: nobody there is ahead. */
static void charge(const struct cpu *runner, struct stretch of) {
    for (struct cpu *cpu = cpus; cpu < cpus + cpu_count; cpu++) {
        if (cpu == runner || cpu->switches == 0)
            continue;
        struct stretch part;
        int tid;
        for (uint64_t at = switch_at(cpu, of.from); next_part(cpu, of, &at, &part, &tid);)
            if (tid != 0) {
                cpu->debt += share * (double)(part.to - part.from);
                cpu->owed += share * (double)(part.to - part.from);
            }
    }
}

/* The interval ran in `of` on `cpu`. Where it also ran elsewhere, this CPU was charged, and is so no more. */
static void settle_on(struct cpu *cpu, struct stretch of) {
    if (of.from < round_.from)
        of.from = round_.from;
    if (of.to > round_.to)
        of.to = round_.to;
    if (of.from >= of.to)
        return;
    int first = segment_count;
    while (first > 0 && segments[first - 1].to >= of.from)
        first--;
    int next = first;
    struct stretch joined = of;
    int64_t at = of.from;
    double elsewhere = 0;
    for (; next < segment_count && segments[next].from <= of.to; next++) {
        const struct stretch *it = &segments[next];
        if (it->from > at)
            charge(cpu, (struct stretch){at, it->from});
        int64_t from = it->from > of.from ? it->from : of.from, to = it->to < of.to ? it->to : of.to;
        elsewhere += to > from ? (double)(to - from) : 0;
        at = it->to > at ? it->to : at;
        joined.from = it->from < joined.from ? it->from : joined.from;
        joined.to = it->to > joined.to ? it->to : joined.to;
    }
    if (at < of.to)
        charge(cpu, (struct stretch){at, of.to});
    cpu->debt -= share * elsewhere;
    cpu->owed -= share * elsewhere;
    if (segment_count + 1 >= SEGMENTS)
        failed("too many segments");
    memmove(&segments[first + 1], &segments[next], (size_t)(segment_count - next) * sizeof *segments);
    segment_count += 1 - (next - first);
    segments[first] = joined;
}

/* `thread` was in the interval for so long, on whatever CPU it ran. */
static void settle(const struct thread *thread, struct stretch of) {
    for (struct cpu *cpu = cpus; cpu < cpus + cpu_count && of.from < of.to; cpu++) {
        struct stretch part;
        int tid;
        if (cpu->switches > 0)
            for (uint64_t at = switch_at(cpu, of.from); next_part(cpu, of, &at, &part, &tid);)
                if (tid == thread->tid)
                    settle_on(cpu, part);
    }
}

static int64_t later(int64_t one, int64_t other) { return one > other ? one : other; }

/* All that happened until now. */
static void look(void) {
    int64_t now = now_ns();
    for (int n = 0; n < cpu_count; n++)
        read_switches(&cpus[n]);
    for (int n = 0; n < thread_count; n++) {
        struct thread *thread = &threads[n];
        uint64_t ended = atomic_load_explicit(&thread->ended, memory_order_acquire);
        for (; thread->seen < ended; thread->seen++) {
            struct stretch it = thread->ends[thread->seen % ROOM];
            settle(thread, (struct stretch){later(it.from, thread->settled), it.to});
        }
        int64_t begun = atomic_load_explicit(&thread->begun, memory_order_acquire);
        if (told == AT_BEGIN && begun != 0 && begun < now) {
            settle(thread, (struct stretch){later(begun, thread->settled), now});
            thread->settled = now;
        }
    }
}

static int is_in_interval(int tid) {
    for (int n = 0; n < thread_count; n++)
        if (threads[n].tid == tid)
            return threads[n].begun != 0;
    return 0;
}

/* Only while somebody is in the interval, as far as that is known: behind it, those who ran ahead have gone, and
 * others would pay. What is still owed is paid the next time. */
static int is_time_to_pay(void) {
    for (int n = 0; n < thread_count && told == AT_BEGIN; n++)
        if (threads[n].begun != 0)
            return 1;
    return told == AT_END;
}

/* The scheduler charges a thread in the interval k times what virtual time does, so there it weighs as much more:
 * a step is 1.25. */
static void weigh(void) {
    for (int n = 0; n < thread_count; n++) {
        int wanted = threads[n].begun != 0 && told == AT_BEGIN ? -steps : 0;
        if (threads[n].nice != wanted)
            setpriority(PRIO_PROCESS, (id_t)threads[n].tid, wanted);
        threads[n].nice = wanted;
    }
}

static void *pay(void *number) {
    struct cpu *cpu = &cpus[(intptr_t)number];
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET((int)(intptr_t)number, &here);
    struct sched_param highest = {.sched_priority = 50};
    if (sched_setaffinity(0, sizeof here, &here) || sched_setscheduler(0, SCHED_FIFO, &highest))
        failed("SCHED_FIFO");
    cpu->payer = (int)syscall(SYS_gettid);
    int64_t next = now_ns() + tick * (intptr_t)number / cpu_count;
    for (;; next += tick) {
        next = later(next, now_ns() + tick / 2);
        struct timespec at = {next / 1000000000, next % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        pthread_mutex_lock(&lock);
        look();
        weigh();
        /* Nobody who is in the interval pays, as far as that is known. */
        int pays = cpu->runs == cpu->payer && cpu->before != 0 &&
                   !(told == AT_BEGIN && is_in_interval(cpu->before));
        int64_t begun = now_ns(), paid = begun;
        while (pays && cpu->debt > 0 && is_time_to_pay() && paid < begun + LONGEST_PAUSE) {
            pthread_mutex_unlock(&lock);
            int64_t now;
            do
                now = now_ns();
            while (now < paid + 2000);
            pthread_mutex_lock(&lock);
            look();
            cpu->debt -= (double)(now - paid);
            cpu->paid += (double)(now - paid);
            paid = now;
        }
        cpu->ticks++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

void start_host(int64_t tick_ns) {
    tick = tick_ns;
    cpu_count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (cpu_count > MOST_CPUS)
        failed("more CPUs than this has room for");
    clock_points = mmap(NULL, sizeof *clock_points * 8 * SEGMENTS, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    /* Whoever has the lock runs at the priority of who waits for it. */
    pthread_mutexattr_t inherit;
    pthread_mutexattr_init(&inherit);
    pthread_mutexattr_setprotocol(&inherit, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&lock, &inherit);
    for (int n = 0; n < cpu_count; n++)
        cpus[n].ring = switches_of(n);
    for (int n = 0; n < cpu_count; n++)
        pthread_create(&cpus[n].thread, NULL, pay, (void *)(intptr_t)n);
}

void begin_pausing(double times, enum told when, int weighs) {
    pthread_mutex_lock(&lock);
    look();
    told = when;
    share = 1 - 1 / times;
    steps = weighs ? (int)lround(log(times) / log(1.25)) : 0;
    segment_count = 0;
    round_ = (struct stretch){now_ns(), INT64_MAX};
    pthread_mutex_unlock(&lock);
}

int64_t end_pausing(void) {
    pthread_mutex_lock(&lock);
    look();
    int64_t end = round_.to = now_ns();
    steps = 0;
    weigh();
    pthread_mutex_unlock(&lock);
    usleep(LATE_NS / 1000);
    pthread_mutex_lock(&lock);
    look();
    double g = point_count ? clock_points[point_count - 1].g : 0;
    for (int n = 0; n < segment_count && point_count + 2 < 8 * SEGMENTS; n++) {
        clock_points[point_count].t = segments[n].from;
        clock_points[point_count++].g = g;
        g += share * (double)(segments[n].to - segments[n].from);
        clock_points[point_count].t = segments[n].to;
        clock_points[point_count++].g = g;
    }
    round_ = (struct stretch){0, 0};
    for (int n = 0; n < cpu_count; n++)
        cpus[n].debt = 0;
    pthread_mutex_unlock(&lock);
    return end;
}

double virtual_time(int64_t t) {
    uint64_t low = 0, high = point_count;
    if (high == 0 || t <= clock_points[0].t)
        return (double)t;
    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;
        if (clock_points[middle].t <= t)
            low = middle;
        else
            high = middle;
    }
    double g = clock_points[low].g;
    if (high < point_count) {
        double part = (double)(t - clock_points[low].t) / (double)(clock_points[high].t - clock_points[low].t);
        g += part * (clock_points[high].g - g);
    }
    return (double)t - g;
}

struct payment payment(void) {
    struct payment all = {0, 0, 0};
    double looked = 0, ticks = 0;
    pthread_mutex_lock(&lock);
    for (int n = 0; n < cpu_count; n++) {
        all.owed += cpus[n].owed;
        all.paid += cpus[n].paid;
        clockid_t id;
        struct timespec ran = {0, 0};
        pthread_getcpuclockid(cpus[n].thread, &id);
        clock_gettime(id, &ran);
        looked += (double)ran.tv_sec * 1e9 + (double)ran.tv_nsec - cpus[n].paid;
        ticks += (double)cpus[n].ticks;
    }
    pthread_mutex_unlock(&lock);
    all.tick_ns = ticks > 0 ? looked / ticks : 0;
    return all;
}
