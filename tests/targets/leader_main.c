/* The first thread ends; another one goes on and writes 1,000 frames at each line. */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_t leader;

static void *work(void *arg) {
    char line[16];
    uint64_t n = 0;
    (void)arg;
    pthread_join(leader, 0);
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
    exit(0);
}

int main(void) {
    pthread_t id;
    leader = pthread_self();
    pthread_create(&id, 0, work, 0);
    pthread_exit(0);
}
