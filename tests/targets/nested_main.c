/* nested FRAMES: at `go`, writes FRAMES frames (thread 0), and goes on until 2,000 signals
 * came, while a timer and another thread send them; their handler writes frames, too (thread 1). */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

static uint64_t handled, written;
static int over;
static pthread_t writer;

static void on_signal(int number) {
    (void)number;
    PPT_WRITE_BEAT(f) {
        uint64_t n = __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
        fill(&f, 1, n);
    }
}

static void *storm(void *arg) {
    sigset_t all;
    (void)arg;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, 0);
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        pthread_kill(writer, SIGUSR1);
        sched_yield();
    }
    return 0;
}

int main(int argc, char **argv) {
    uint64_t frames = argc > 1 ? strtoul(argv[1], 0, 10) : 1000;
    struct sigaction action = {0};
    struct itimerval every = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    pthread_t stormer;
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, 0);
    sigaction(SIGUSR1, &action, 0);
    writer = pthread_self();
    puts("ready");
    fflush(stdout);
    if (getchar() == EOF)
        return 1;
    pthread_create(&stormer, 0, storm, 0);
    setitimer(ITIMER_REAL, &every, 0);
    for (uint64_t n = 0; n < frames || __atomic_load_n(&handled, __ATOMIC_RELAXED) < 2000; n++) {
        PPT_WRITE_BEAT(f) {
            fill(&f, 0, n);
            written++;
        }
    }
    setitimer(ITIMER_REAL, &never, 0);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    pthread_join(stormer, 0);
    printf("written %lu\nhandled %lu\n", (unsigned long)(written + handled),
           (unsigned long)handled);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
