/* Prints how many nanoseconds a call of an empty function takes: the best of 20 rounds of N calls each. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PLAIN __attribute__((no_instrument_function))

PLAIN static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

__attribute__((noinline)) int called(int x) {
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}

PLAIN int main(int argc, char **argv) {
    long number = argc > 1 ? atol(argv[1]) : 20000;
    double best = 1e18;
    int sum = 0;
    for (int round = 0; round < 20; round++) {
        double start = now();
        for (long i = 0; i < number; i++)
            sum = called(sum);
        double took = (now() - start) / (double)number;
        best = took < best ? took : best;
        /* In this time, ppt empties the ring. */
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
    printf("%.2f\n", best);
    return 0;
}
