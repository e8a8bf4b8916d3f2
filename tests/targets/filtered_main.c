/* filtered: a program that filters its own system calls, by lines on stdin.
 *
 *   strict    a thread that may only read, write and exit
 *   kill      a thread whose shmat(2) or memfd_create(2) would end the process
 *   thread    that thread writes 1,000 frames
 *   go        the first thread does
 *   one       it writes one
 *
 * filtered FRAMES: the first thread gets such a filter, and writes FRAMES frames. */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int work[2], answer[2];

static int strict(void) { return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); }

static int filter(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_shmat, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}

static uint64_t frames(uint64_t thread, long count) {
    uint64_t written = 0;
    for (long n = 0; n < count; n++) {
        PPT_WRITE_BEAT(f) {
            fill(&f, thread, (uint64_t)n);
            written++;
        }
    }
    return written;
}

/* Nothing but read and write after the first line. */
static void *filtered(void *how) {
    char byte = (char)((*(int (**)(void))how)() != 0);
    while (write(answer[1], &byte, 1) == 1 && read(work[0], &byte, 1) == 1) {
        uint64_t written = frames(1, 1000);
        if (write(answer[1], &written, sizeof written) != sizeof written)
            break;
    }
    syscall(SYS_exit, 0);
    return 0;
}

static void start(int (*how)(void)) {
    static int (*chosen)(void);
    pthread_t thread;
    char failed = 1;
    chosen = how;
    pthread_create(&thread, 0, filtered, &chosen);
    if (read(answer[0], &failed, 1) != 1 || failed)
        exit(1);
    puts("filtered");
}

static uint64_t of_thread(void) {
    uint64_t written = 0;
    char byte = 0;
    if (write(work[1], &byte, 1) != 1 || read(answer[0], &written, sizeof written) != sizeof written ||
        read(answer[0], &byte, 1) != 1)
        exit(1);
    return written;
}

int main(int argc, char **argv) {
    char line[32];
    if (pipe(work) != 0 || pipe(answer) != 0)
        return 1;
    if (argc > 1) {
        if (filter() != 0)
            return 1;
        printf("written %lu\n", (unsigned long)frames(0, atol(argv[1])));
        return 0;
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        if (strcmp(line, "strict\n") == 0)
            start(strict);
        else if (strcmp(line, "kill\n") == 0)
            start(filter);
        else if (strcmp(line, "thread\n") == 0)
            printf("written %lu\n", (unsigned long)of_thread());
        else if (strcmp(line, "go\n") == 0)
            printf("written %lu\n", (unsigned long)frames(0, 1000));
        else if (strcmp(line, "one\n") == 0)
            printf("written %lu\n", (unsigned long)frames(0, 1));
        else
            return 1;
        fflush(stdout);
    }
    return 0;
}
