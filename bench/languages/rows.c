/* rows ROUNDS CALLS: nanoseconds a call of C and C++, by turns, for each line of stdin. */
#include "rows.h"
#include "c.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *const names[4] = {"main", "worker-3", "acceptor", "0123456789abcdef"};

void c_span(int calls) {
    for (int i = 0; i < calls; i++) {
        PPT_BEGIN_REQUEST(f) {
            f.id = (uint64_t)i;
            f.kind = i;
            f.who = i >> 1;
            f.a = (uint64_t)i;
            f.b = (uint64_t)i;
        }
        KEEP();
    }
}

void c_text(int calls) {
    for (int i = 0; i < calls; i++) {
        PPT_WRITE_NAMED(f) {
            f.kind = i;
            f.who = i >> 1;
            f.a = (uint64_t)i;
            f.b = (uint64_t)i;
            PPT_TEXT(f.name, names[i & 3]);
        }
        KEEP();
    }
}

void c_interval(int calls) {
    for (int i = 0; i < calls; i++) {
        uint64_t start = ppt_c_now();
        KEEP();
        PPT_WRITE_HANDLED(f) {
            f.kind = i;
            f.who = i >> 1;
            f.a = (uint64_t)i;
            f.b = (uint64_t)i;
            f.handle_start = start;
            f.handle_end = ppt_c_now();
        }
        KEEP();
    }
}

void c_counter(int calls) {
    for (int i = 0; i < calls; i++) {
        PPT_ADD_BYTES_IN((uint64_t)i);
        KEEP();
    }
}

static const struct {
    const char *name;
    void (*run)(int calls);
} rows[] = {
    {"C: span, one tick", c_span},         {"C++: span, one tick", cpp_span},
    {"C: text, no tick", c_text},          {"C++: text, no tick", cpp_text},
    {"C: interval, two ticks", c_interval}, {"C++: interval, two ticks", cpp_interval},
    {"C: counter", c_counter},             {"C++: counter", cpp_counter},
};
enum { ROWS = sizeof rows / sizeof rows[0], MOST = 1000 };

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **arguments) {
    static double took[ROWS][MOST];
    int rounds = count > 1 ? atoi(arguments[1]) : 1, calls = count > 2 ? atoi(arguments[2]) : 1000;
    if (rounds < 1 || rounds > MOST)
        return 2;
    setvbuf(stdout, 0, _IOLBF, 0);
    puts("ready");
    for (int next; (next = getchar()) != EOF;) {
        if (next != '\n')
            continue;
        /* The first round warms up. */
        for (int round = -1; round < rounds; round++)
            for (int row = 0; row < ROWS; row++) {
                double start = now();
                rows[row].run(calls);
                if (round >= 0)
                    took[row][round] = (now() - start) / calls;
            }
        for (int row = 0; row < ROWS; row++) {
            qsort(took[row], (size_t)rounds, sizeof took[row][0], ascending);
            printf("%s\t%f\t%f\n", rows[row].name, took[row][0], took[row][rounds / 2]);
        }
        puts("done");
    }
}
