/* live_main JOBS PAUSE_US: two threads and a forked child do jobs as fast as they can, and pause after
 * each hundred; the parent begins requests, of which the child ends every second one. */
#include "live.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned jobs, pause_us;

static void work(unsigned from) {
    for (unsigned n = from; n < from + jobs; n++) {
        PPT_WRITE_JOB(f) {
            f.n = n;
            f.verb = (uint8_t)(n % 5);
            f.handle_start = ppt_live_now();
            f.load = (double)n / 8;
            f.handle_end = ppt_live_now();
        }
        ppt_add_jobs(1);
        ppt_observe_sizes(n % 120);
        if (n % 100 == 99)
            usleep(pause_us);
    }
}

static void *thread(void *argument) {
    work((unsigned)(uintptr_t)argument);
    return 0;
}

int main(int argc, char **argv) {
    jobs = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
    pause_us = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
    for (unsigned id = 0; id < 100; id++)
        PPT_BEGIN_REQUEST(f) f.id = id;
    pid_t child = fork();
    if (child == 0) {
        work(2000000);
        for (unsigned id = 0; id < 100; id += 2)
            PPT_END_REQUEST(f) f.id = id;
        _exit(0);
    }
    pthread_t other;
    pthread_create(&other, 0, thread, (void *)1000000);
    work(0);
    pthread_join(other, 0);
    waitpid(child, 0, 0);
    return 0;
}
