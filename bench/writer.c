/* What writing a frame of 64 bytes costs, beside the stores that no ring can do without: one
 * function for each way to do it, timed in a loop by the commands of commands.h. */
#include "commands.h"
#include "ticks.h"
#include "writer.h"
#include <sys/mman.h>

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

static void empty_loop(uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; i++)
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
static void floor_loop(uint64_t from, uint64_t to) {
    uint64_t *slot = ring.first, *const first = ring.first, *const end = ring.end;
    for (uint64_t i = from; i < to; i++) {
        store(slot, i + 1, i);
        slot += WORDS;
        slot = slot == end ? first : slot;
    }
}

/* The same with the CPU's counter read. */
static void floor_loop_tick(uint64_t from, uint64_t to) {
    uint64_t *slot = ring.first, *const first = ring.first, *const end = ring.end;
    for (uint64_t i = from; i < to; i++) {
        store_stamps(slot, i + 1, i, i, i, ppt1_ticks());
        slot += WORDS;
        slot = slot == end ? first : slot;
    }
}

/* Copies of 64 bytes from and to rings of the same size: what memcpy makes of them. */
static void copy_loop(uint64_t from, uint64_t to) {
    static uint64_t source[SLOTS * WORDS];
    for (uint64_t i = from; i < to; i++) {
        uint64_t const at = i % SLOTS * WORDS;
        memcpy(ring.first + at, source + at, WORDS * 8);
        __asm__ volatile("" : : : "memory");
    }
}

/* The floor as a function, its place in memory. */
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

#ifdef LANGUAGES
/* block_form in C++ and in Rust. */
void block_form_cpp(uint64_t i);
void block_form_rust(uint64_t i);
LOOP_OVER(block_form_cpp)
LOOP_OVER(block_form_rust)
#endif

#ifdef EVENTS
/* Adds to counters, and frames of other kinds, beside what a program could do itself: an add to a
 * variable of the thread, and a plain frame of the same fields. */
#include "events.h"

static __thread uint64_t of_thread;
static NOINLINE void thread_local_add(uint64_t i) {
    of_thread += i;
    __asm__ volatile("" : : : "memory");
}
static NOINLINE void counter_add(uint64_t i) { PPT_ADD_BYTES_IN(i); }
static NOINLINE void exponential_observe(uint64_t i) { PPT_OBSERVE_HANDLING((int64_t)(i & 0xfffff)); }
static NOINLINE void linear_observe(uint64_t i) { PPT_OBSERVE_QUEUE((uint32_t)(i & 1023)); }
static NOINLINE void plain_frame(uint64_t i) {
    PPT_WRITE_PLAIN(f) {
        f.at = ppt_events_now();
        f.id = i;
        f.a = i;
        f.b = i;
    }
}
static NOINLINE void span_begin(uint64_t i) {
    PPT_BEGIN_REQUEST(f) {
        f.id = i;
        f.a = i;
        f.b = i;
    }
}
static NOINLINE void chain_step(uint64_t i) {
    PPT_STEP_STAGE(END, f) {
        f.id = i;
        f.a = i;
        f.b = i;
    }
}
/* What goes through is a message of 100 bytes. */
static char message[100];
static NOINLINE void point_of_100_bytes(uint64_t i) {
    memcpy(message, &i, sizeof i);
    __asm__ volatile("" : : : "memory");
    PPT_WRITE_PASSED(f) {
        f.id = ppt_hash(message, sizeof message);
        f.a = i;
        f.b = i;
    }
}
LOOP_OVER(thread_local_add)
LOOP_OVER(counter_add)
LOOP_OVER(exponential_observe)
LOOP_OVER(linear_observe)
LOOP_OVER(plain_frame)
LOOP_OVER(span_begin)
LOOP_OVER(chain_step)
LOOP_OVER(point_of_100_bytes)
#endif

LOOP_OVER(empty_call)
LOOP_OVER(floor_call)
LOOP_OVER(block_form)
LOOP_OVER(macro_form)
LOOP_OVER(macro_write)
LOOP_OVER(block_form_one_stamp)
LOOP_OVER(block_form_three_stamps)
LOOP_OVER(clock_alone)
LOOP_OVER(floor_one_tick)
LOOP_OVER(floor_three_ticks)
LOOP_OVER(block_form_one_tick)
LOOP_OVER(block_form_three_ticks)
LOOP_OVER(tick_alone)

enum { MANY = 8 << 20, FEWER = 1 << 20 };

static const struct way WAYS[] = {
    {"empty_loop", empty_loop, MANY, 0},
    {"floor_loop", floor_loop, MANY, 0},
    {"floor_loop_tick", floor_loop_tick, FEWER, 0},
    {"copy_loop", copy_loop, MANY, 0},
    {"empty_call", empty_call_calls, MANY, 0},
    {"floor_call", floor_call_calls, MANY, 0},
    {"block_form", block_form_calls, MANY, 0},
#ifdef LANGUAGES
    {"block_form_cpp", block_form_cpp_calls, MANY, 0},
    {"block_form_rust", block_form_rust_calls, MANY, 0},
#endif
    {"macro_form", macro_form_calls, MANY, 0},
    {"macro_write", macro_write_calls, MANY, 0},
    {"block_form_one_stamp", block_form_one_stamp_calls, FEWER, 0},
    {"block_form_three_stamps", block_form_three_stamps_calls, FEWER, 0},
    {"clock_alone", clock_alone_calls, FEWER, 0},
    {"floor_one_tick", floor_one_tick_calls, FEWER, 0},
    {"floor_three_ticks", floor_three_ticks_calls, FEWER, 0},
    {"block_form_one_tick", block_form_one_tick_calls, FEWER, 0},
    {"block_form_three_ticks", block_form_three_ticks_calls, FEWER, 0},
    {"tick_alone", tick_alone_calls, FEWER, 0},
#ifdef EVENTS
    {"thread_local_add", thread_local_add_calls, MANY, 0},
    {"counter_add", counter_add_calls, MANY, 0},
    {"exponential_observe", exponential_observe_calls, MANY, 0},
    {"linear_observe", linear_observe_calls, MANY, 0},
    {"plain_frame", plain_frame_calls, FEWER, 0},
    {"span_begin", span_begin_calls, FEWER, 0},
    {"chain_step", chain_step_calls, FEWER, 0},
    {"point_of_100_bytes", point_of_100_bytes_calls, FEWER, 0},
#endif
    {0, 0, 0, 0},
};

int main(void) {
    make_ring();
    return serve(WAYS, (struct collecting){0, 0});
}
