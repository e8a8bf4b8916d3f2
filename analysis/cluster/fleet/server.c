/* Writes frames as a service under a steady load would: RATE requests a second by THREADS threads, for SECONDS.
 *
 *     pptc request.frame && cc -O2 server.c request.c -o server -lm -lpthread && ./server 100 8 60
 *
 * The requests do nothing. Each ends when it is written, and says that it began a while before. */
#include "request.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double rate;
static int seconds;

/* A number from 0 to 1, by xorshift64*. */
static double uniform(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)((*state * 0x2545F4914F6CDD1Dull) >> 11) / 9007199254740992.0;
}

/* A value around `median` whose logarithm is normal: half of a pair by Box and Muller. */
static double spread(uint64_t *state, double median) {
    double radius = sqrt(-2 * log(1 - uniform(state)));
    return median * exp(radius * cos(6.283185307179586 * uniform(state)));
}

static void request(uint64_t *state) {
    static const uint16_t statuses[] = {500, 404, 404, 404, 404};
    int share = (int)(100 * uniform(state)), luck = (int)(100 * uniform(state));
    PPT_WRITE_REQUEST(f) {
        f.op = share < 70   ? REQUEST_OP_GET
               : share < 90 ? REQUEST_OP_PUT
               : share < 98 ? REQUEST_OP_LIST
                            : REQUEST_OP_DELETE;
        f.status = luck < 5 ? statuses[luck] : 200;
        f.customer = (uint32_t)(10000 * pow(uniform(state), 3));
        f.bytes = (uint64_t)spread(state, 4096);
        f.handle_end = ppt_request_now();
        f.handle_start = f.handle_end - (int64_t)spread(state, 2e6);
    }
}

static void *serve(void *number) {
    uint64_t state = 0x9E3779B97F4A7C15ull * (uint64_t)(1 + (intptr_t)number), written = 0;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    int64_t at = next.tv_sec * 1000000000ll + next.tv_nsec, end = at + seconds * 1000000000ll;
    for (;; written++) {
        at += (int64_t)(-log(1 - uniform(&state)) / rate * 1e9);
        if (at >= end)
            return (void *)(uintptr_t)written;
        next.tv_sec = at / 1000000000, next.tv_nsec = at % 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        request(&state);
    }
}

int main(int count, char **words) {
    int threads = count == 4 ? atoi(words[2]) : 0;
    if (threads < 1 || (rate = atof(words[1]) / threads) <= 0 || (seconds = atoi(words[3])) < 1) {
        fprintf(stderr, "server: expected RATE THREADS SECONDS, all greater than 0\n");
        return 2;
    }
    pthread_t *all = calloc((size_t)threads, sizeof *all);
    for (intptr_t i = 0; all && i < threads; i++)
        if (pthread_create(&all[i], NULL, serve, (void *)i)) {
            perror("server: pthread_create");
            return 1;
        }
    uint64_t written = 0;
    for (int i = 0; all && i < threads; i++) {
        void *one;
        pthread_join(all[i], &one);
        written += (uintptr_t)one;
    }
    printf("%llu\n", (unsigned long long)written);
    free(all);
    return 0;
}
