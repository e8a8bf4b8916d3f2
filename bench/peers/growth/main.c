/* Many threads, rings, buffers or processes: what they cost whoever collects. The frame file `growth`
 * is made by the harness.
 *
 *   hello            nothing
 *   threads N        N threads begin, and wait
 *   load N FILE      N copies of a library with a buffer, FILE.0 and so on
 *   children N       N processes are forked, and wait
 *   touch            each thread, each library and each process writes a frame
 *   steady RATE N    the first thread writes N frames at that rate: `written`
 *   turns RATE N     the threads do, each in its turn, and each one at least: `written`
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "growth.h"

static void frame(uint64_t i) {
    PPT_WRITE_GROWTH(f) {
        f.a = (int32_t)i;
        f.b = (int32_t)(i >> 1);
        f.c = i;
        f.d = i;
        f.e = i;
        f.at = ppt_growth_now();
    }
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t ns) {
    struct timespec until = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0) != 0) {
    }
}

enum { MOST = 16384 };
static void (*libraries[MOST])(uint64_t);
static unsigned threads, loaded;

/* What threads are told: the same to all of them, each time in another round. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t told, done;
    unsigned round, busy;
    uint64_t begun, pause, frames;
} work = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, 0, 0};

static void *waiting_thread(void *argument) {
    uint64_t const number = (uint64_t)(uintptr_t)argument;
    unsigned seen = 0;
    for (;;) {
        pthread_mutex_lock(&work.mutex);
        while (work.round == seen)
            pthread_cond_wait(&work.told, &work.mutex);
        seen = work.round;
        uint64_t const frames = work.frames, pause = work.pause;
        uint64_t next = work.begun + pause / threads * number;
        pthread_mutex_unlock(&work.mutex);
        for (uint64_t i = 0; i < frames; i++, next += pause) {
            sleep_until(next);
            frame(i);
        }
        pthread_mutex_lock(&work.mutex);
        if (--work.busy == 0)
            pthread_cond_signal(&work.done);
        pthread_mutex_unlock(&work.mutex);
    }
    return 0;
}

/* Each thread writes so many frames, with a pause after each. */
static void tell(uint64_t frames, uint64_t pause) {
    pthread_mutex_lock(&work.mutex);
    work.busy = threads;
    work.frames = frames;
    work.pause = pause;
    work.begun = now_ns();
    work.round++;
    pthread_cond_broadcast(&work.told);
    while (work.busy > 0)
        pthread_cond_wait(&work.done, &work.mutex);
    pthread_mutex_unlock(&work.mutex);
}

static void begin_threads(unsigned count) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 32 << 10);
    for (; threads < count; threads++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, waiting_thread, (void *)(uintptr_t)threads) != 0) {
            perror("a thread more");
            exit(1);
        }
    }
}

static void load(unsigned count, const char *stem) {
    for (; loaded < count && loaded < MOST; loaded++) {
        char file[4200];
        snprintf(file, sizeof file, "%s.%u", stem, loaded);
        void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            exit(1);
        }
        *(void **)&libraries[loaded] = dlsym(library, "growth_frame");
    }
}

static pid_t children[MOST];
static unsigned begun;
/* A byte for each frame of a child. */
static int said[2];

static void begin_children(unsigned count) {
    sigset_t touched;
    sigemptyset(&touched);
    sigaddset(&touched, SIGUSR1);
    sigprocmask(SIG_BLOCK, &touched, 0);
    if (begun == 0 && pipe(said) != 0)
        exit(1);
    for (; begun < count && begun < MOST; begun++) {
        children[begun] = fork();
        if (children[begun] < 0) {
            perror("a process more");
            exit(1);
        }
        if (children[begun] == 0) {
            int signal;
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            while (sigwait(&touched, &signal) == 0) {
                frame(1);
                if (write(said[1], "x", 1) != 1)
                    break;
            }
            _exit(1);
        }
    }
}

static void touch_children(void) {
    char one;
    for (unsigned i = 0; i < begun; i++)
        if (kill(children[i], SIGUSR1) != 0 || read(said[0], &one, 1) != 1)
            exit(1);
}

int main(void) {
    char line[4352], file[4096];
    unsigned long long first, second;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "threads %llu", &first) == 1) {
            begin_threads((unsigned)first);
        } else if (sscanf(line, "load %llu %4095s", &first, file) == 2) {
            load((unsigned)first, file);
        } else if (sscanf(line, "children %llu", &first) == 1) {
            begin_children((unsigned)first);
        } else if (strcmp(line, "touch\n") == 0) {
            frame(1);
            tell(1, 0);
            for (unsigned i = 0; i < loaded; i++)
                libraries[i](i);
            touch_children();
        } else if (sscanf(line, "steady %llu %llu", &first, &second) == 2) {
            uint64_t next = now_ns();
            for (uint64_t i = 0; i < second; i++) {
                next += 1000000000 / first;
                sleep_until(next);
                frame(i);
            }
            printf("written %llu\n", second);
        } else if (sscanf(line, "turns %llu %llu", &first, &second) == 2) {
            uint64_t const each = (second + threads - 1) / threads;
            tell(each, 1000000000 * (uint64_t)threads / first);
            printf("written %llu\n", (unsigned long long)(each * threads));
        } else if (strcmp(line, "hello\n") != 0) {
            fprintf(stderr, "not a command: %s", line);
            return 2;
        }
        puts("end");
        fflush(stdout);
    }
    for (unsigned i = 0; i < begun; i++)
        kill(children[i], SIGKILL);
    return 0;
}
