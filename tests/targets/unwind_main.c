/* Ways out of a frame that are not its end. Each line is the way:
 *   jump    longjmp(3) out of every third block
 *   cancel  32 threads are cancelled inside a block, after 10 frames
 *   async   32 threads are cancelled anywhere, also inside the writer
 *   raw     3 threads end by the system call, without destructors, after 10 frames
 *   wait    a thread writes until one of its frames got a number
 *   signal  longjmp(3) out of a signal handler that interrupted the writer, then 100 frames
 * `written` counts the frames that were begun and neither left nor cut off. */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t written, published;
static int started, interrupt;
static jmp_buf back;
static __thread uint64_t n;

void REAL_END(ppt1_thread *t);
void WRAP_END(ppt1_thread *t);
void WRAP_END(ppt1_thread *t) {
    if (interrupt)
        raise(SIGUSR1);
    REAL_END(t);
    __atomic_fetch_add(&published, 1, __ATOMIC_RELAXED);
}

static uint64_t tid(void) { return (uint64_t)syscall(SYS_gettid); }

static void ten(void) {
    for (int i = 0; i < 10; i++) {
        PPT_WRITE_BEAT(f) {
            fill(&f, tid(), n++);
            __atomic_fetch_add(&written, 1, __ATOMIC_RELAXED);
        }
    }
}

static void *jump(void *arg) {
    static volatile int i;
    (void)arg;
    for (i = 0; i < 999; i++) {
        if (setjmp(back) == 0) {
            PPT_WRITE_BEAT(f) {
                if (i % 3 == 0)
                    longjmp(back, 1);
                fill(&f, tid(), n++);
                written++;
            }
        }
    }
    return 0;
}

static void *cancelled(void *arg) {
    (void)arg;
    ten();
    PPT_WRITE_BEAT(f) {
        fill(&f, tid(), n++);
        __atomic_fetch_add(&started, 1, __ATOMIC_RELAXED);
        for (;;)
            pause();
    }
    return 0;
}

static void *anywhere(void *arg) {
    uint64_t me = tid();
    (void)arg;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
    __atomic_fetch_add(&started, 1, __ATOMIC_RELAXED);
    for (;;)
        PPT_WRITE_BEAT(f) fill(&f, me, n++);
    return 0;
}

static void *raw(void *arg) {
    (void)arg;
    ten();
    syscall(SYS_exit, 0);
    return 0;
}

static void *wait_for_a_ring(void *arg) {
    uint64_t before = __atomic_load_n(&published, __ATOMIC_RELAXED);
    (void)arg;
    while (__atomic_load_n(&published, __ATOMIC_RELAXED) == before) {
        usleep(10000);
        PPT_WRITE_BEAT(f) {
            fill(&f, tid(), n++);
            written++;
        }
    }
    return 0;
}

static void out(int number) {
    (void)number;
    longjmp(back, 1);
}

static void *out_of_a_handler(void *arg) {
    struct sigaction action = {0};
    (void)arg;
    action.sa_handler = out;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGUSR1, &action, 0);
    ten();
    interrupt = 1;
    if (setjmp(back) == 0)
        PPT_WRITE_BEAT(f) fill(&f, tid(), n++);
    interrupt = 0;
    for (int i = 0; i < 10; i++)
        ten();
    return 0;
}

/* Runs `threads` of `work`, and cancels them once they have started. */
static void run(unsigned threads, void *(*work)(void *), int cancel) {
    pthread_t ids[64];
    started = 0;
    for (unsigned i = 0; i < threads; i++)
        pthread_create(&ids[i], 0, work, 0);
    while (cancel && __atomic_load_n(&started, __ATOMIC_RELAXED) != (int)threads)
        usleep(100);
    for (unsigned i = 0; i < threads; i++) {
        if (cancel)
            pthread_cancel(ids[i]);
        pthread_join(ids[i], 0);
    }
}

int main(void) {
    char line[16];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        written = published = 0;
        if (strcmp(line, "jump\n") == 0)
            run(1, jump, 0);
        else if (strcmp(line, "cancel\n") == 0)
            run(32, cancelled, 1);
        else if (strcmp(line, "async\n") == 0)
            run(32, anywhere, 1);
        else if (strcmp(line, "raw\n") == 0)
            run(3, raw, 0);
        else if (strcmp(line, "wait\n") == 0)
            run(1, wait_for_a_ring, 0);
        else
            run(1, out_of_a_handler, 0);
        printf("written %lu\npublished %lu\n", (unsigned long)written, (unsigned long)published);
        fflush(stdout);
    }
    return 0;
}
