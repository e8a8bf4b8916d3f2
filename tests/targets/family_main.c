/* A process and its children. `write N` writes N frames here; `fork`, `thread`, `grandchild`,
 * `daemon`, `exec` and `clone` make a child by that way, which first of all prints
 * `child PID ON`; that of `user` becomes another user first, that of `spawn` comes of posix_spawn(3). `vfork`
 * has a child of vfork(2) write 10 frames; that of `lodger` writes none, and lives. A child that gets SIGUSR2 writes 100 frames between two
 * SIGUSR1 that it sends to itself, and says `round PID WRITTEN ON`; at SIGWINCH it forks; it lives
 * until stdin is closed. `greet NAME` connects to an abstract socket; `filter` has socket(2) end this
 * process from now on; `reap` waits for the end of a child; `followed` says `made PID FOLLOWED`. C11 and
 * C++17. */
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
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
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
    char round[32];
    uint64_t before = written;
    raise(SIGUSR1);
    for (int i = 0; i < 100; i++)
        one();
    raise(SIGUSR1);
    snprintf(round, sizeof round, "round %ld", (long)getpid());
    say(round, (long)(written - before), on());
}

static void child(int was_on);

static void forks(int signal) {
    (void)signal;
    if (fork() == 0)
        child(on());
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
    signal(SIGWINCH, forks);
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

static void become_another_user(void) {
    pid_t pid = fork();
    if (pid == 0 && setgid(65534) == 0 && setuid(65534) == 0)
        child(on());
    if (pid == 0)
        _exit(9);
}

/* A child of vfork(2) that starts no program, and has this process's memory. */
static void *lodge(void *unused) {
    (void)unused;
    if (vfork() == 0) {
        say("child", getpid(), on());
        live();
    }
    return 0;
}

/* Stays connected. */
static void greet(const char *name) {
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path + 1, name, strlen(name));
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (connect(fd, (const struct sockaddr *)&address, length) != 0)
        perror(name);
}

static void filter(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        perror("filter");
}

static int followed(void) {
#ifdef CONTROL
    return CONTROL.follow_claim != 0 && CONTROL.follow_claim == CONTROL.claim[3];
#else
    return 0;
#endif
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
    } else if (strcmp(kind, "spawn") == 0) {
        pid_t pid;
        char name[] = "child";
        char *const argv[] = {(char *)me, name, 0};
        posix_spawn(&pid, me, 0, 0, argv, environ);
    } else if (strcmp(kind, "user") == 0) {
        become_another_user();
    } else if (strcmp(kind, "lodger") == 0) {
        pthread_create(&thread, 0, lodge, 0);
        pthread_detach(thread);
    } else if (strncmp(kind, "greet ", 6) == 0) {
        greet(kind + 6);
    } else if (strcmp(kind, "filter") == 0) {
        filter();
    } else if (strcmp(kind, "reap") == 0) {
        waitpid(-1, 0, 0);
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
    char line[64];
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
            say("made", getpid(), strcmp(line, "followed") == 0 ? followed() : on());
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
