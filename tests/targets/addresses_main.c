/* Calls functions by pointers, and writes a frame of each call: the function, and where it was called
 * from. `work` calls those of the program, `load` loads a library, `plugin` calls its function, `jit`
 * calls code that it has made, `fork` has a child do the work, `exec PATH` becomes another program. */
#define _GNU_SOURCE
#include "addresses.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static uint32_t number;

static __attribute__((noinline)) void calls(void *function) {
    PPT_WRITE_CALL(f) {
        f.at = ppt_addresses_now();
        f.function = PPT_ADDR(function);
        f.caller = PPT_ADDR(__builtin_return_address(0));
        f.number = number++;
    }
}

__attribute__((noinline)) void process_command(void) {
    calls((void *)(uintptr_t)process_command);
    __asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void save(void) {
    calls((void *)(uintptr_t)save);
    __asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void work(void) {
    process_command();
    save();
    calls((void *)(uintptr_t)puts);
}

static void *made(void) {
    static const unsigned char ret[] =
#ifdef __aarch64__
        {0xc0, 0x03, 0x5f, 0xd6};
#else
        {0xc3};
#endif
    void *code = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        exit(2);
    memcpy(code, ret, sizeof ret);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    return code;
}

int main(void) {
    char line[256];
    void *library = 0;
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != 0) {
        line[strcspn(line, "\n")] = 0;
        if (strcmp(line, "work") == 0)
            work();
        if (strncmp(line, "load ", 5) == 0 && (library = dlopen(line + 5, RTLD_NOW)) == 0)
            return 3;
        if (strcmp(line, "plugin") == 0)
            calls(dlsym(library, "plugged"));
        if (strcmp(line, "unload") == 0)
            dlclose(library);
        if (strcmp(line, "jit") == 0) {
            void *code = made();
            printf("made %p\n", code);
            calls(code);
        }
        if (strcmp(line, "fork") == 0) {
            pid_t child = fork();
            if (child == 0) {
                work();
                _exit(0);
            }
            waitpid(child, 0, 0);
        }
        if (strncmp(line, "exec ", 5) == 0)
            execl(line + 5, line + 5, (char *)0);
        puts("done");
        fflush(stdout);
    }
    return 0;
}
