/* Two loops that share a queue: a thread receives messages, and a main loop draws them, 60 passes a
 * second. `loops one` takes one message a pass; `loops all` takes what is there. It ends at the end of
 * its input, and says how many messages it showed. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include "loops.h"

#define PASS_NS (1000000000L / 60)
#define ROOM 65536

static uint64_t queue[ROOM];
static atomic_ulong put, got;
static atomic_bool over;

static void pause_for(long ns) {
    struct timespec time = {0, ns};
    nanosleep(&time, NULL);
}

/* Messages come in bursts of three, 17 times a second. */
static void *network(void *unused) {
    for (uint64_t id = 0; !atomic_load(&over);) {
        for (int burst = 0; burst < 3 && atomic_load(&put) - atomic_load(&got) < ROOM; burst++) {
            id++;
            PPT_WRITE_QUEUED(f) { f.id = ppt_hash_u64(id); }
            queue[atomic_load(&put) % ROOM] = id;
            atomic_fetch_add(&put, 1);
        }
        pause_for(59000000);
    }
    return unused;
}

int main(int argc, char **argv) {
    int takes_all = argc > 1 && strcmp(argv[1], "all") == 0;
    pthread_t thread;
    if (pthread_create(&thread, NULL, network, NULL) != 0)
        return 1;
    unsigned long shown = 0;
    for (uint32_t pass = 1; !atomic_load(&over) || atomic_load(&got) < atomic_load(&put); pass++) {
        uint64_t taken[64];
        int count = 0;
        while (count < (takes_all ? 64 : 1) && atomic_load(&got) < atomic_load(&put)) {
            uint64_t id = queue[atomic_load(&got) % ROOM];
            atomic_fetch_add(&got, 1);
            PPT_WRITE_TAKEN(f) { f.id = ppt_hash_u64(id); }
            taken[count++] = id;
        }
        pause_for(PASS_NS / 4); /* draws */
        for (int i = 0; i < count; i++, shown++)
            PPT_WRITE_SHOWN(f) { f.id = ppt_hash_u64(taken[i]); f.pass = pass; }
        pause_for(PASS_NS - PASS_NS / 4);
        if (pass % 6 == 0 && !atomic_load(&over)) {
            char byte;
            struct timespec now = {0, 0};
            fd_set in;
            FD_ZERO(&in);
            FD_SET(0, &in);
            if (pselect(1, &in, NULL, NULL, &now, NULL) == 1 && read(0, &byte, 1) <= 0)
                atomic_store(&over, 1);
        }
    }
    pthread_join(thread, NULL);
    printf("shown %lu\n", shown);
    return 0;
}
