/* A program whose signal handlers run while an interval takes longer. Each line of stdin names what they do, in a round
 * of `ppt whatif --live` that makes 2 ms of work ten times as long:
 *   frames  write a frame of their own
 *   jump    jump out of the wait (longjmp)
 *   fork    fork; the child returns from the handler, and exits
 *   exit    end the thread
 *   exec    another thread executes this program anew
 * Says then how many requests were begun and done, and how many handlers ran. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "requests.h"

static const char *mode;
static sigjmp_buf back;
static pid_t self;
static volatile int over;
static int begun, done, handled, children, failed;

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void compute_for(long long ns) {
    long long at = now_ns() + ns;
    while (now_ns() < at)
        ;
}

static void handler(int number) {
    (void)number;
    handled++;
    if (mode[0] == 'f' && mode[1] == 'r') {
        PPT_WRITE_SERVED(f) {
            f.request_start = ppt_requests_now();
            f.request_end = ppt_requests_now();
        }
    } else if (mode[0] == 'j') {
        siglongjmp(back, 1);
    } else if (mode[0] == 'f') {
        pid_t child = fork();
        if (child > 0)
            children++;
    } else if (mode[0] == 'e') {
        syscall(SYS_exit, 0);
    }
}

/* Requests of 2 ms of work. */
static void *requests(void *unused) {
    while (!over) {
        sigsetjmp(back, 1);
        if (over)
            break;
        __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
        uint64_t start = ppt_requests_now();
        compute_for(2000000);
        PPT_WRITE_PART(f) {
            f.work_start = start;
            f.work_end = ppt_requests_now();
        }
        if (getpid() != self) /* a child, which came back from the handler */
            _exit(0);
        __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
    }
    return unused;
}

int main(int argc, char **argv) {
    char line[16];
    struct sigaction action = {0};
    self = getpid();
    action.sa_handler = handler;
    sigaction(SIGUSR1, &action, NULL);
    puts(argc > 1 ? argv[1] : "ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        pthread_t thread;
        line[strcspn(line, "\n")] = 0;
        mode = line;
        over = begun = done = handled = children = failed = 0;
        pthread_create(&thread, NULL, requests, NULL);
        while (strcmp(mode, "exec") != 0 && __atomic_load_n(&begun, __ATOMIC_RELAXED) == 0)
            sched_yield();
        for (int i = 0; i < 20; i++) {
            struct timespec pause = {0, 25000000 + i * 1000000};
            clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
            if (strcmp(mode, "exec") == 0)
                execl("/proc/self/exe", argv[0], "again", NULL);
            if (strcmp(mode, "exit") != 0 || i == 0)
                pthread_kill(thread, SIGUSR1);
        }
        over = 1;
        pthread_join(thread, NULL);
        while (children > 0) {
            int status = 0;
            if (wait(&status) < 0)
                break;
            failed += status != 0;
            children--;
        }
        printf("begun %d done %d handled %d failed %d\n", begun, done, handled, failed + children);
        fflush(stdout);
    }
    return 0;
}
