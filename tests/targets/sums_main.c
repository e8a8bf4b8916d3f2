/* sums THREADS ROUNDS [LEDGER]: at each line, THREADS new threads add to counters, ROUNDS times each,
 * while a timer's signals interrupt them. It keeps sums of its own of what it adds while somebody is
 * attached, in the file LEDGER if there is one: before each add, and after it. At `fork`, a child does
 * the same. */
#define _GNU_SOURCE
#include "sums.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* The sums. All are of the whole life of the program. */
typedef struct ledger {
    uint64_t begun, done; /* rounds that added bytes */
    uint64_t bytes, ticks, wait_sum, wait_count, queue_sum, queue_count, queue_below, queue_above;
} ledger;

static ledger *own;
static uint64_t rounds, written;

static uint64_t noted(uint64_t *sum, uint64_t value) {
    __atomic_fetch_add(sum, value, __ATOMIC_RELAXED);
    return value;
}

static uint64_t bytes_of(uint64_t n) {
    noted(&own->begun, 1);
    return noted(&own->bytes, n);
}

static int64_t wait_of(int64_t ns) {
    noted(&own->wait_count, 1);
    noted(&own->wait_sum, (uint64_t)ns);
    return ns;
}

static uint32_t queue_of(uint32_t value) {
    noted(&own->queue_count, 1);
    noted(&own->queue_sum, value);
    noted(value < 10 ? &own->queue_below : &own->queue_above, value < 10 || value >= 1000);
    return value;
}

static void on_signal(int number) {
    (void)number;
    PPT_ADD_TICKS(noted(&own->ticks, 1));
}

static void *work(void *argument) {
    uint64_t count = 0, seed = (uint64_t)(uintptr_t)argument * 7919 + 1;
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t begun = 0;
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        PPT_ADD_INFLIGHT(1);
        PPT_ADD_BYTES((begun = 1, bytes_of(seed >> 54)));
        noted(&own->done, begun);
        PPT_OBSERVE_WAIT(wait_of((int64_t)(seed >> 8) >> (seed & 63)));
        PPT_OBSERVE_QUEUE(queue_of((uint32_t)(seed >> 53)));
        PPT_ADD_INFLIGHT(-1);
        PPT_WRITE_BEAT(f) {
            f.n = i;
            count++;
        }
    }
    noted(&written, count);
    return 0;
}

static void run(int threads) {
    pthread_t *ids = calloc((size_t)threads, sizeof *ids);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&ids[i], 0, work, (void *)(uintptr_t)(i + 1)) != 0)
            exit(1);
    /* Signals go to threads that add. */
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, 0);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], 0);
    pthread_sigmask(SIG_UNBLOCK, &alarm, 0);
    free(ids);
}

static void say(void) {
    printf("written {\"frames\":%lu,\"begun\":%lu,\"done\":%lu,\"bytes\":%lu,\"ticks\":%lu,"
           "\"wait_sum\":%lu,\"wait_count\":%lu,\"queue_sum\":%lu,\"queue_count\":%lu,"
           "\"queue_below\":%lu,\"queue_above\":%lu}\n",
           written, own->begun, own->done, own->bytes, own->ticks, own->wait_sum,
           own->wait_count, own->queue_sum, own->queue_count, own->queue_below, own->queue_above);
    fflush(stdout);
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    rounds = argc > 2 ? strtoull(argv[2], 0, 10) : 1000;
    int file = argc > 3 ? open(argv[3], O_RDWR | O_CREAT, 0600) : -1;
    int flags = file == -1 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
    if (file != -1 && ftruncate(file, sizeof *own) != 0)
        return 1;
    own = mmap(0, sizeof *own, PROT_READ | PROT_WRITE, flags, file, 0);
    if (own == MAP_FAILED)
        return 1;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 200}, {0, 200}}, off = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, 0);
    char line[16];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        pid_t child = line[0] == 'f' ? fork() : 0;
        if (child > 0) {
            waitpid(child, 0, 0);
            say();
            continue;
        }
        setitimer(ITIMER_REAL, &timer, 0);
        run(threads);
        setitimer(ITIMER_REAL, &off, 0);
        if (line[0] == 'f')
            _exit(0);
        say();
    }
    return 0;
}
