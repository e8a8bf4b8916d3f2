/* A server and its clients, each a process, until stdin ends:
 *   exchange serve SOCKET WORK_US [spin]       one thread answers; its work sleeps or computes for WORK_US
 *   exchange ask SOCKET THINK_US CLIENTS [spin]   each client, a thread, thinks, asks, and waits
 * Of each 600 requests, the clients say how long they took, by their own clock: median, mean and 95th percentile, ns. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "exchange.h"

#define MOST 64

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int spins;
static long long each_ns;
static volatile int over;

static long long clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* For `ns`: asleep, or on a CPU. */
static void take(long long ns) {
    if (spins) {
        long long to = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
        while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < to)
            ;
        return;
    }
    long long at = clock_ns(CLOCK_MONOTONIC) + ns;
    struct timespec t = {at / 1000000000, at % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

#define TOLD 600

static long long took[TOLD];
static int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int less(const void *one, const void *other) {
    long long a = *(const long long *)one, b = *(const long long *)other;
    return (a > b) - (a < b);
}

static void tell(long long ns) {
    pthread_mutex_lock(&lock);
    took[count++] = ns;
    if (count == TOLD) {
        long long sum = 0;
        for (count = 0; count < TOLD; count++)
            sum += took[count];
        qsort(took, TOLD, sizeof *took, less);
        printf("took %lld %lld %lld\n", took[TOLD / 2], sum / TOLD, took[TOLD * 95 / 100]);
        fflush(stdout);
        count = 0;
    }
    pthread_mutex_unlock(&lock);
}

static void answer(int connection) {
    uint64_t id;
    if (read(connection, &id, sizeof id) != sizeof id)
        return;
    PPT_WRITE_TAKEN(f) { f.id = ppt_hash_u64(id); }
    uint64_t start = ppt_exchange_now();
    take(each_ns);
    PPT_WRITE_SERVE(f) {
        f.request = id;
        f.work_start = start;
        f.work_end = ppt_exchange_now();
    }
    PPT_WRITE_ANSWERED(f) { f.id = ppt_hash_u64(id); }
    if (write(connection, &id, sizeof id) != sizeof id)
        over = 1;
}

static int serve(void) {
    struct pollfd all[MOST + 2] = {{0, POLLIN, 0}};
    int there = 2;
    all[1].fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    all[1].events = POLLIN;
    if (bind(all[1].fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(all[1].fd, MOST) != 0)
        return 1;
    puts("ready");
    fflush(stdout);
    while (!over && poll(all, (nfds_t)there, -1) > 0 && all[0].revents == 0) {
        for (int i = 2; i < there; i++)
            if (all[i].revents & POLLIN)
                answer(all[i].fd);
        if (all[1].revents && there < MOST + 2) {
            all[there].fd = accept(all[1].fd, NULL, NULL);
            all[there++].events = POLLIN;
        }
    }
    return 0;
}

static void *client(void *number) {
    int connection = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
    if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0)
        exit(1);
    for (uint64_t n = 0; !over; n++) {
        uint64_t id = (uint64_t)(uintptr_t)number << 40 | n;
        take(each_ns / 2 + each_ns * (long long)(n * 7919 % 11) / 10);
        long long asked = clock_ns(CLOCK_MONOTONIC);
        PPT_WRITE_ASKED(f) { f.id = ppt_hash_u64(id); }
        if (write(connection, &id, sizeof id) != sizeof id || read(connection, &id, sizeof id) != sizeof id)
            break;
        PPT_WRITE_GOT(f) { f.id = ppt_hash_u64(id); }
        tell(clock_ns(CLOCK_MONOTONIC) - asked);
    }
    close(connection);
    return number;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
    strncpy(address.sun_path, argv[2], sizeof address.sun_path - 1);
    each_ns = atoll(argv[3]) * 1000;
    spins = strcmp(argv[argc - 1], "spin") == 0;
    if (strcmp(argv[1], "serve") == 0)
        return serve();
    pthread_t clients[MOST];
    int many = argc > 4 ? atoi(argv[4]) : 1;
    if (many < 1 || many > MOST)
        return 2;
    for (int i = 0; i < many; i++)
        pthread_create(&clients[i], NULL, client, (void *)(uintptr_t)(i + 1));
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    over = 1;
    for (int i = 0; i < many; i++)
        pthread_join(clients[i], NULL);
    return 0;
}
