/* crowd PROCESSES THREADS: so many children that do nothing, each with so many threads that do
 * nothing; all of them end with this program, which ends with its stdin. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static void *idle(void *unused) {
    (void)unused;
    for (;;)
        pause();
}

int main(int argc, char **argv) {
    int processes = argc > 1 ? atoi(argv[1]) : 1, threads = argc > 2 ? atoi(argv[2]) : 0, ready[2];
    if (pipe(ready) != 0)
        return 1;
    for (int i = 0; i < processes; i++) {
        if (fork() != 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 16384);
        char failed = 0;
        for (int t = 0; t < threads; t++) {
            pthread_t thread;
            failed |= pthread_create(&thread, &attributes, idle, 0) != 0;
        }
        if (write(ready[1], &failed, 1) != 1)
            return 1;
        idle(0);
    }
    for (int i = 0; i < processes; i++) {
        char failed = 1;
        if (read(ready[0], &failed, 1) != 1 || failed)
            return 1;
    }
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    return 0;
}
