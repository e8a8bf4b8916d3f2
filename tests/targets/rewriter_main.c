/* rewriter: a target that an attacker has taken over. It obeys lines on stdin:
 *
 *   burst RING N        thread RING, from 0, writes N frames; says "written TOTAL", of all threads
 *   cursor RING DELTA   moves the cursor of a ring
 *   refused COUNT       states that it has refused COUNT frames; says "refused"
 *   header              fills the segment's header, but for its nonce, with rubbish
 *   scribble SEED       from now on random words go to random places of descriptor, control page
 *                       and segment, as fast as can be; says "scribbling"
 *   calm                ends that, and puts descriptor and control page back; says "calm"
 *   gate                says "gate 0" or "gate 1"
 */
#define _GNU_SOURCE
#include "steady.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS 2
#define HEADERS (3 * 4096)
#define PITCH 512

extern const char DESCRIPTOR[128];

static struct {
    sem_t go, done;
    unsigned long count;
} threads[THREADS];
static unsigned long written;

static void *work(void *which) {
    uintptr_t me = (uintptr_t)which;
    for (;;) {
        sem_wait(&threads[me].go);
        for (unsigned long i = 0; i < threads[me].count; i++) {
            PPT_WRITE_STEADY(f) {
                f.n = written;
                f.twice = 2 * written;
                f.inverse = ~written;
                written++;
            }
        }
        sem_post(&threads[me].done);
    }
    return 0;
}

/* The segment, as the kernel lists it. */
static uint64_t *segment(size_t *words) {
    unsigned long start, end;
    uint64_t *found = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        if (strstr(line, "/SYSV") && sscanf(line, "%lx-%lx", &start, &end) == 2) {
            found = (uint64_t *)start;
            *words = (end - start) / 8;
        }
    }
    if (maps)
        fclose(maps);
    return found;
}

static int scribbling;
static uint64_t state;
static pthread_t scribbler;
static char kept_control[sizeof CONTROL], kept_descriptor[sizeof DESCRIPTOR];

static uint64_t dice(void) { /* splitmix64 */
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void store(uint64_t *words, size_t count) {
    uint64_t value = dice();
    size_t at = dice() % count;
    switch (value % 4) {
    case 0:
        value = dice() % 1024;
        break;
    case 1:
        value = __atomic_load_n(words + at, __ATOMIC_RELAXED) + (UINT64_C(1) << (value >> 8) % 64);
        break;
    case 2:
        value = __atomic_load_n(words + at, __ATOMIC_RELAXED) - dice() % 64;
        break;
    }
    __atomic_store_n(words + at, value, __ATOMIC_RELAXED);
}

static void *scribble(void *unused) {
    while (__atomic_load_n(&scribbling, __ATOMIC_RELAXED)) {
        size_t count;
        uint64_t *words = segment(&count);
        for (int i = 0; i < 1000; i++) {
            if (words) {
                store(words + HEADERS / 8, 16 * PITCH / 8); /* ring headers */
                store(words, count);
            }
            store((uint64_t *)&CONTROL, sizeof CONTROL / 8);
            if (i % 100 == 0)
                store((uint64_t *)DESCRIPTOR, sizeof DESCRIPTOR / 8);
        }
    }
    return unused;
}

int main(void) {
    char line[256];
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_t thread;
        sem_init(&threads[i].go, 0, 0);
        sem_init(&threads[i].done, 0, 0);
        pthread_create(&thread, 0, work, (void *)i);
    }
    uintptr_t at = (uintptr_t)DESCRIPTOR & -4096ul;
    if (mprotect((void *)at, 8192, PROT_READ | PROT_WRITE))
        return 1;
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        unsigned long ring, count;
        long delta;
        size_t words;
        if (sscanf(line, "burst %lu %lu", &ring, &count) == 2) {
            threads[ring].count = count;
            sem_post(&threads[ring].go);
            sem_wait(&threads[ring].done);
            printf("written %lu\n", written);
        } else if (sscanf(line, "cursor %lu %ld", &ring, &delta) == 2) {
            uint64_t *tail = segment(&words) + (HEADERS + ring * PITCH) / 8;
            __atomic_fetch_add(tail, (uint64_t)delta, __ATOMIC_RELAXED);
            puts("moved");
        } else if (sscanf(line, "refused %lu", &count) == 1) {
            __atomic_store_n((uint64_t *)&CONTROL.no_ring, count, __ATOMIC_RELAXED);
            puts("refused");
        } else if (strcmp(line, "header\n") == 0) {
            uint64_t *header = segment(&words);
            for (int i = 0; i < 512; i++)
                if (i != 2) /* the nonce: the target itself compares that */
                    __atomic_store_n(header + i, UINT64_C(0xdeadbeefdeadbeef) * i, __ATOMIC_RELAXED);
            puts("spoilt");
        } else if (sscanf(line, "scribble %lu", &count) == 1) {
            memcpy(kept_control, (const void *)&CONTROL, sizeof CONTROL);
            memcpy(kept_descriptor, DESCRIPTOR, sizeof DESCRIPTOR);
            state = count;
            scribbling = 1;
            pthread_create(&scribbler, 0, scribble, 0);
            puts("scribbling");
        } else if (strcmp(line, "calm\n") == 0) {
            __atomic_store_n(&scribbling, 0, __ATOMIC_RELAXED);
            pthread_join(scribbler, 0);
            memset((void *)&CONTROL, 0, sizeof CONTROL);
            memcpy((void *)(uintptr_t)DESCRIPTOR, kept_descriptor, sizeof DESCRIPTOR);
            puts("calm");
        } else if (strcmp(line, "gate\n") == 0) {
            printf("gate %d\n", ppt_steady_on());
        }
        fflush(stdout);
    }
    return 0;
}
