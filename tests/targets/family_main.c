/* A process and its children. `write N` writes N frames here; `fork`, `thread`, `grandchild`,
 * `daemon`, `exec` and `clone` make a child by that way, which says `child PID ON` with its first
 * breath; `vfork` has a child of vfork(2) write 10 frames. A child that gets SIGUSR2 writes 100
 * frames between two SIGUSR1 that it sends to itself, and says `round PID ON`; it lives until stdin
 * is closed. C11 and C++17. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifdef __cplusplus
#include "flood.hpp"
#define on ppt::flood::on
#else
#include "flood.h"
#define on ppt_flood_on
#endif
#include "pattern.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *me;
static uint64_t n, written;

static void one(void) {
#ifdef __cplusplus
    ppt::flood::beat::write([](auto &f) {
        fill(&f, 0, n++);
        written++;
    });
#else
    PPT_WRITE_BEAT(f) {
        fill(&f, 0, n++);
        written++;
    }
#endif
}

/* In one piece: others write, too. */
static void say(const char *what, long pid, long value) {
    char line[64];
    int length = snprintf(line, sizeof line, "%s %ld %ld\n", what, pid, value);
    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        _exit(9);
}

static void ignored(int signal) { (void)signal; }

static void measured(int signal) {
    (void)signal;
    raise(SIGUSR1);
    for (int i = 0; i < 100; i++)
        one();
    raise(SIGUSR1);
    say("round", getpid(), on());
}

/* Until stdin is closed. */
static void live(void) {
    struct pollfd closed = {STDIN_FILENO, 0, 0};
    while (poll(&closed, 1, -1) < 0) {
    }
    _exit(0);
}

static void child(int was_on) {
    signal(SIGUSR1, ignored);
    signal(SIGUSR2, measured);
    say("child", getpid(), was_on);
    live();
}

/* Both of them go on, and the second one is it. */
static void *fork_here(void *times) {
    for (const char *left = (const char *)times; *left != 0; left++) {
        pid_t pid = fork();
        int was_on = on();
        if (pid != 0) {
            if (left != times) {
                if (*left == 'd')
                    _exit(0);
                live();
            }
            return 0;
        }
        if (*left == 'd')
            setsid();
        if (left[1] == 0)
            child(was_on);
    }
    return 0;
}

static void make(const char *kind) {
    pthread_t thread;
    if (strcmp(kind, "fork") == 0)
        fork_here((void *)"f");
    else if (strcmp(kind, "grandchild") == 0)
        fork_here((void *)"ff");
    else if (strcmp(kind, "daemon") == 0)
        fork_here((void *)"dd");
    else if (strcmp(kind, "thread") == 0) {
        pthread_create(&thread, 0, fork_here, (void *)"f");
        pthread_join(thread, 0);
    } else if (strcmp(kind, "exec") == 0) {
        if (fork() == 0) {
            execl(me, me, "child", (char *)0);
            _exit(9);
        }
    } else if (strcmp(kind, "clone") == 0) {
        if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0)
            child(on());
    } else if (strcmp(kind, "vfork") == 0) {
        pid_t pid = vfork();
        if (pid == 0) {
            for (int i = 0; i < 10; i++)
                one();
            _exit(0);
        }
        waitpid(pid, 0, 0);
    }
}

int main(int argc, char **argv) {
    char line[32];
    me = argv[0];
    if (argc > 1)
        child(on());
    setvbuf(stdin, 0, _IONBF, 0);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "write ", 6) != 0) {
            make(line);
            say("made", getpid(), on());
            continue;
        }
        written = 0;
        for (int left = atoi(line + 6); left > 0; left--)
            one();
        printf("written %lu\n", (unsigned long)written);
        fflush(stdout);
    }
    return 0;
}
