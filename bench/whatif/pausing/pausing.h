/* Pausing CPUs, so that the rest of a host is as slow as one interval is to be faster. */
#ifndef PAUSING_H
#define PAUSING_H

#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

static inline int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* In the program: its threads say when they are in the interval. */
void register_thread(void);
void begin_interval(void);
void end_interval(void);

/* When the host learns of it. */
enum told { AT_BEGIN, AT_END };

/* Begins to look at the CPUs, and pins a thread on each; it looks every `tick_ns`. */
void start_host(int64_t tick_ns);

/* From here on, the interval is `times` as fast. */
void begin_pausing(double times, enum told told, int weighs);
/* Returns when it ended. */
int64_t end_pausing(void);

/* t - G(t) */
double virtual_time(int64_t t);

/* What was owed in pauses, and paid, in ns, and what a look costs. */
struct payment {
    double owed, paid, tick_ns;
};
struct payment payment(void);

#endif
