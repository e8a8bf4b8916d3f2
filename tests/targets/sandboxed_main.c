/* A master, and workers that sandbox themselves. `workers N MODE INIT PREPARE` has N of them, one
 * after the other: each calls prepare if PREPARE is not 0, takes INIT milliseconds, sandboxes itself,
 * and writes 20 frames. MODE `filter` is a filter that kills at shmat(2) and memfd_create(2),
 * `strict` seccomp's strict mode, `none` neither; `closed` closes every descriptor instead. It says
 * `ended KILLED WRITTEN`: workers that a signal ended, and frames that are to be captured. `write N`
 * writes N frames here. */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t n, *written;

static void one(void) {
    PPT_WRITE_BEAT(f) {
        fill(&f, 0, n++);
        ++*written;
    }
}

static int filter(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_shmat, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void work(const char *mode, int init, int prepare) {
    int failed = 0;
    if (prepare)
        ppt_flood_prepare();
    if (init != 0)
        usleep(1000 * (useconds_t)init);
    if (strcmp(mode, "filter") == 0)
        failed = filter();
    else if (strcmp(mode, "strict") == 0)
        failed = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    else if (strcmp(mode, "closed") == 0)
        failed = (int)syscall(SYS_close_range, 0, ~0U, 0);
    for (int i = 0; i < 20 && !failed; i++)
        one();
    syscall(SYS_exit, failed); /* exit_group is not in strict mode's list */
}

int main(void) {
    char line[64], mode[16];
    int count, init, prepare;
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    written = mmap(0, sizeof *written, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        *written = 0;
        if (sscanf(line, "workers %d %15s %d %d", &count, mode, &init, &prepare) == 4) {
            int killed = 0;
            for (int status; count > 0; count--) {
                pid_t pid = fork();
                if (pid == 0)
                    work(mode, init, prepare);
                if (waitpid(pid, &status, 0) != pid || (WIFEXITED(status) && WEXITSTATUS(status)))
                    return 1;
                killed += WIFSIGNALED(status);
            }
            printf("ended %d %lu\n", killed, (unsigned long)*written);
        } else {
            for (int left = atoi(line + 6); left > 0; left--)
                one();
            printf("written %lu\n", (unsigned long)*written);
        }
        fflush(stdout);
    }
    return 0;
}
