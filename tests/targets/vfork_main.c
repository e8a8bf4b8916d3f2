/* The first thread waits in vfork(2), for a child that does not end before stdin does; another one
 * writes 1,000 frames at each line. */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static volatile pid_t child;

static void *work(void *arg) {
    char line[16];
    uint64_t n = 0;
    (void)arg;
    while (child == 0)
        usleep(1000);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        uint64_t written = 0;
        for (int i = 0; i < 1000; i++, n++) {
            PPT_WRITE_BEAT(f) {
                fill(&f, 0, n);
                written++;
            }
        }
        printf("written %lu\n", (unsigned long)written);
        fflush(stdout);
    }
    kill(child, SIGKILL);
    exit(0);
}

int main(void) {
    pthread_t id;
    pthread_create(&id, 0, work, 0);
    if (vfork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        child = getpid();
        for (;;)
            pause();
    }
    pause(); /* until the other thread ends the program */
    return 0;
}
