/* What writing a frame costs: one function per way to do it, timed in a loop.
 *
 * Reads commands from stdin: `measure` prints `NAME NANOSECONDS` per way and `end`;
 * `steady RATE SECONDS` writes frames at that rate and prints `end`. */
#define _GNU_SOURCE
#include "ticks.h"
#include "writer.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define NOINLINE __attribute__((noinline))
#define SLOTS 16384u
#define WORDS 8u

static NOINLINE void empty_call(uint64_t i) { __asm__ volatile("" : : "r"(i)); }

static NOINLINE void block_form(uint64_t i) {
    PPT_WRITE_WRITER(f) {
        f.kind = (int)i;
        f.who = (int)(i >> 1);
        f.start = (int64_t)i;
        f.middle = (int64_t)i;
        f.end = (int64_t)i;
        f.a = i;
        f.b = i;
        f.c = i;
    }
}

static NOINLINE void block_form_one_stamp(uint64_t i) {
    PPT_WRITE_WRITER(f) {
        f.kind = (int)i;
        f.who = (int)(i >> 1);
        f.start = (int64_t)i;
        f.middle = (int64_t)i;
        f.end = ppt_writer_now();
        f.a = i;
        f.b = i;
        f.c = i;
    }
}

static NOINLINE void block_form_three_stamps(uint64_t i) {
    PPT_WRITE_WRITER(f) {
        f.kind = (int)i;
        f.who = (int)(i >> 1);
        f.start = ppt_writer_now();
        f.middle = ppt_writer_now();
        f.end = ppt_writer_now();
        f.a = i;
        f.b = i;
        f.c = i;
    }
}

static NOINLINE void block_form_one_tick(uint64_t i) {
    PPT_WRITE_TICKS(f) {
        f.kind = (int)i;
        f.who = (int)(i >> 1);
        f.start = i;
        f.middle = i;
        f.end = ppt_ticks_now();
        f.a = i;
        f.b = i;
        f.c = i;
    }
}

static NOINLINE void block_form_three_ticks(uint64_t i) {
    PPT_WRITE_TICKS(f) {
        f.kind = (int)i;
        f.who = (int)(i >> 1);
        f.start = ppt_ticks_now();
        f.middle = ppt_ticks_now();
        f.end = ppt_ticks_now();
        f.a = i;
        f.b = i;
        f.c = i;
    }
}

static NOINLINE void macro_form(uint64_t i) {
    WRITE_WRITER_KIND((int)i);
    WRITE_WRITER_WHO((int)(i >> 1));
    WRITE_WRITER_START((int64_t)i);
    WRITE_WRITER_MIDDLE((int64_t)i);
    WRITE_WRITER_END((int64_t)i);
    WRITE_WRITER_A(i);
    WRITE_WRITER_B(i);
    WRITE_WRITER_C(i);
    ppt_write_writer_frame();
}

/* The end of a frame alone, its fields set before. */
static NOINLINE void macro_write(uint64_t i) {
    (void)i;
    ppt_write_writer_frame();
}

static NOINLINE void clock_alone(uint64_t i) {
    struct timespec t;
    (void)i;
    clock_gettime(CLOCK_MONOTONIC, &t);
    __asm__ volatile("" : : "r"(&t) : "memory");
}

/* CPU time: what else runs on the machine shows as little as possible. */
static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void empty_loop(uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        __asm__ volatile("" : : "r"(i));
}

/* A ring as ppt has it, and a writer's place in it. */
static struct {
    uint64_t *slot, *first, *end;
    uint64_t next, cursor;
} ring;

static void make_ring(void) {
    ring.first = (uint64_t *)mmap(0, SLOTS * WORDS * 8, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (ring.first == (uint64_t *)MAP_FAILED)
        abort();
    ring.slot = ring.first;
    ring.end = ring.first + SLOTS * WORDS;
}

static inline void store_stamps(uint64_t *slot, uint64_t seq, uint64_t i, uint64_t start,
                                uint64_t middle, uint64_t end) {
    __atomic_store_n(slot, seq, __ATOMIC_RELAXED);
    __atomic_store_n(slot + 1, (uint64_t)(uint32_t)i | i >> 1 << 32, __ATOMIC_RELAXED);
    __atomic_store_n(slot + 2, start, __ATOMIC_RELAXED);
    __atomic_store_n(slot + 3, middle, __ATOMIC_RELAXED);
    __atomic_store_n(slot + 4, end, __ATOMIC_RELAXED);
    __atomic_store_n(slot + 5, i, __ATOMIC_RELAXED);
    __atomic_store_n(slot + 6, i, __ATOMIC_RELAXED);
    __atomic_store_n(slot + 7, i, __ATOMIC_RELAXED);
    __atomic_store_n(&ring.cursor, seq, __ATOMIC_RELEASE);
}

static inline void store(uint64_t *slot, uint64_t seq, uint64_t i) {
    store_stamps(slot, seq, i, i, i, i);
}

/* The floor: the stores that any ring needs, in line, its place in registers. */
static void floor_loop(uint64_t count) {
    uint64_t *slot = ring.first, *const first = ring.first, *const end = ring.end;
    for (uint64_t i = 0; i < count; i++) {
        store(slot, i + 1, i);
        slot += WORDS;
        slot = slot == end ? first : slot;
    }
}

/* The same as a function, its place in memory. */
static NOINLINE void floor_call(uint64_t i) {
    uint64_t *slot = ring.slot;
    store(slot, ring.next + 1, i);
    ring.next++;
    slot += WORDS;
    ring.slot = slot == ring.end ? ring.first : slot;
}

static inline void advance(void) {
    uint64_t *slot = ring.slot + WORDS;
    ring.next++;
    ring.slot = slot == ring.end ? ring.first : slot;
}

/* And with the counter read, which is as little as a stamp can cost. */
static NOINLINE void floor_one_tick(uint64_t i) {
    store_stamps(ring.slot, ring.next + 1, i, i, i, ppt1_ticks());
    advance();
}

static NOINLINE void floor_three_ticks(uint64_t i) {
    uint64_t start = ppt1_ticks(), middle = ppt1_ticks();
    store_stamps(ring.slot, ring.next + 1, i, start, middle, ppt1_ticks());
    advance();
}

static NOINLINE void tick_alone(uint64_t i) {
    (void)i;
    uint64_t t = ppt1_ticks();
    __asm__ volatile("" : : "r"(t));
}

static void report(const char *name, uint64_t start, uint64_t count) {
    printf("%s %.4f\n", name, (double)(now() - start) / (double)count);
}

/* The call is direct, as a user's would be; a first lap warms up, pages included. */
#define CALLS(function, count)                                                                     \
    do {                                                                                           \
        for (uint64_t i = 0; i < 2 * SLOTS; i++)                                                   \
            function(i);                                                                           \
        uint64_t start = now();                                                                    \
        for (uint64_t i = 0; i < (count); i++)                                                     \
            function(i);                                                                           \
        report(#function, start, (count));                                                         \
    } while (0)

#define LOOP(function, count)                                                                      \
    do {                                                                                           \
        function(2 * SLOTS);                                                                       \
        uint64_t start = now();                                                                    \
        function(count);                                                                           \
        report(#function, start, (count));                                                         \
    } while (0)

static void measure(void) {
    enum { MANY = 8 << 20, FEWER = 1 << 20 };
    LOOP(empty_loop, MANY);
    LOOP(floor_loop, MANY);
    CALLS(empty_call, MANY);
    CALLS(floor_call, MANY);
    CALLS(block_form, MANY);
    CALLS(macro_form, MANY);
    CALLS(macro_write, MANY);
    CALLS(block_form_one_stamp, FEWER);
    CALLS(block_form_three_stamps, FEWER);
    CALLS(clock_alone, FEWER);
    CALLS(floor_one_tick, FEWER);
    CALLS(floor_three_ticks, FEWER);
    CALLS(block_form_one_tick, FEWER);
    CALLS(block_form_three_ticks, FEWER);
    CALLS(tick_alone, FEWER);
}

static void steady(unsigned rate, unsigned seconds) {
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (uint64_t i = 0; i < (uint64_t)rate * seconds; i++) {
        next.tv_nsec += 1000000000 / rate;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
        block_form_three_stamps(i);
    }
}

int main(void) {
    char command[64];
    unsigned rate, seconds;
    make_ring();
    while (fgets(command, sizeof command, stdin)) {
        if (sscanf(command, "steady %u %u", &rate, &seconds) == 2)
            steady(rate, seconds);
        else
            measure();
        puts("end");
        fflush(stdout);
    }
    return 0;
}
