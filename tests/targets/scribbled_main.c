/* A program that writes garbage into its own mask page, where ppt says whose interval takes longer: `scribbled SECONDS`.
 * Says how many requests it has done. */
#include "requests.c"

#include <stdio.h>
#include <stdlib.h>

static const uint64_t *page;
static volatile int over;

static uint64_t monotonic(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Values that could do harm: numbers of words, clocks, plausible times, random ones. */
static uint64_t garbage(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint64_t word = *state >> 20;
    switch (word % 5) {
    case 0:
        return word >> 3 & 63;
    case 1:
        return monotonic();
    case 2:
        return UINT64_MAX - (word & 3);
    case 3:
        return PPT1_(control).claim[PPT1_CLAIM_NONCE];
    default:
        return word * *state;
    }
}

static void *scribble(void *unused) {
    uint64_t state = 1;
    while (!over) {
        uint64_t *words = (uint64_t *)(uintptr_t)__atomic_load_n(&page, __ATOMIC_ACQUIRE);
        if (!words)
            continue;
        for (unsigned i = 0; i < PPT1_SLOWDOWN_WORDS; i++)
            __atomic_store_n(words + PPT1_SLOWDOWN + i, garbage(&state), __ATOMIC_RELAXED);
        __atomic_store_n(words, 0, __ATOMIC_RELAXED);
        /* The words stay the same for that long, so that the program accepts them. */
        uint64_t until = monotonic() + 20000;
        while (monotonic() < until)
            ;
        __atomic_store_n(words + PPT1_SLOWDOWN, PPT1_(control).claim[PPT1_CLAIM_NONCE], __ATOMIC_RELAXED);
        __atomic_store_n(words + PPT1_SLOWDOWN + 1, monotonic(), __ATOMIC_RELAXED);
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    unsigned long done = 0;
    puts("ready");
    fflush(stdout);
    getchar();
    uint64_t end = monotonic() + (uint64_t)atoi(argc > 1 ? argv[1] : "1") * 1000000000;
    pthread_create(&thread, NULL, scribble, NULL);
    for (; monotonic() < end; done++) {
        PPT_WRITE_PART(f) {
            f.work_start = ppt_requests_now();
            for (int i = 0; i < 1000; i++)
                __asm__ volatile("");
            f.work_end = ppt_requests_now();
        }
        if (!page)
            __atomic_store_n(&page, ppt1_this_thread.enable, __ATOMIC_RELEASE);
    }
    over = 1;
    pthread_join(thread, NULL);
    printf("written %lu\n", done);
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
