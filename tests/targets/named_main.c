/* Threads with names. At `beat`, each writes one frame with its number; at `rename`, the second one gets
 * another name, by itself. Names may be any bytes. */
#define _GNU_SOURCE
#include "named.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORKERS = 3 };
static const char *const names[WORKERS] = {"reader", "writer", "\x1b[31m\t\xff"};
static pthread_barrier_t begin, end;
static int renames;

static void beat(void) {
    PPT_WRITE_BEAT(f) {
        f.thread = (uint32_t)syscall(SYS_gettid);
    }
}

static void *work(void *arg) {
    size_t number = (size_t)arg;
    prctl(PR_SET_NAME, names[number]);
    pthread_barrier_wait(&end);
    for (;;) {
        pthread_barrier_wait(&begin);
        if (renames && number == 1)
            prctl(PR_SET_NAME, "compactor");
        if (!renames)
            beat();
        pthread_barrier_wait(&end);
    }
    return 0;
}

int main(void) {
    char line[16];
    pthread_t thread;
    prctl(PR_SET_NAME, "chief");
    pthread_barrier_init(&begin, 0, WORKERS + 1);
    pthread_barrier_init(&end, 0, WORKERS + 1);
    for (size_t number = 0; number < WORKERS; number++)
        if (pthread_create(&thread, 0, work, (void *)number) != 0)
            return 1;
    pthread_barrier_wait(&end);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        renames = strcmp(line, "rename\n") == 0;
        pthread_barrier_wait(&begin);
        if (!renames)
            beat();
        pthread_barrier_wait(&end);
        puts("done");
        fflush(stdout);
    }
    return 0;
}
