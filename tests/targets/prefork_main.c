/* prefork COUNTERS WORKERS: a server that forks workers, which write frames on and on, and another
 * one for each that ends. Each worker counts in a place of its own of a file that outlives it: frames
 * that found the gate open, and of those the ones that were written. `kill` ends all workers by
 * SIGKILL and says "killed"; `quit` stops them all, says "workers N" (how many there were), and ends.
 * `short N` has N children, one after the other, that write 10 frames each, and says "short". */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 100000

static struct counter {
    uint64_t begun, done;
} *counters;
static struct state {
    int stop;
} *state;
static unsigned workers;

static void one(struct counter *mine, uint64_t who) {
    PPT_WRITE_BEAT(f) {
        fill(&f, who, mine->begun);
        __atomic_store_n(&mine->begun, mine->begun + 1, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&mine->done, mine->begun, __ATOMIC_RELAXED);
}

static pid_t start(int frames) {
    unsigned number = workers++;
    pid_t pid = number < MOST ? fork() : -1;
    if (pid != 0)
        return pid;
    for (int i = 0; frames == 0 || i < frames; i++) {
        one(counters + number, number % 256);
        if (__atomic_load_n(&state->stop, __ATOMIC_RELAXED))
            break;
        if (frames == 0)
            for (volatile int wait = 0; wait < 2000; wait++) /* no faster than a disk */
                ;
    }
    _exit(0);
}

int main(int argc, char **argv) {
    int fd = argc > 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
    int count = argc > 2 ? atoi(argv[2]) : 0;
    size_t bytes = MOST * sizeof *counters;
    pid_t pids[64];
    char line[32];
    if (fd == -1 || ftruncate(fd, (off_t)bytes) != 0 || count > 64)
        return 2;
    counters = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    state = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    setvbuf(stdin, 0, _IONBF, 0);
    for (int i = 0; i < count; i++)
        pids[i] = start(0);
    puts("ready");
    fflush(stdout);
    for (;;) {
        struct pollfd in = {STDIN_FILENO, POLLIN, 0};
        int ready = poll(&in, 1, 1);
        for (int i = 0; i < count; i++)
            if (waitpid(pids[i], 0, WNOHANG) == pids[i])
                pids[i] = start(0);
        if (ready <= 0)
            continue;
        if (fgets(line, sizeof line, stdin) == 0)
            strcpy(line, "quit\n");
        if (strcmp(line, "kill\n") == 0) {
            for (int i = 0; i < count; i++)
                kill(pids[i], SIGKILL);
            puts("killed");
        } else if (strncmp(line, "short ", 6) == 0) {
            for (int left = atoi(line + 6); left > 0; left--)
                waitpid(start(10), 0, 0);
            puts("short");
        } else {
            __atomic_store_n(&state->stop, 1, __ATOMIC_RELAXED);
            for (int i = 0; i < count; i++)
                waitpid(pids[i], 0, 0);
            printf("workers %u\n", workers);
            fflush(stdout);
            return 0;
        }
        fflush(stdout);
    }
}
