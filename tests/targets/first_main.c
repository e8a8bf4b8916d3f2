/* first FRAMES [HOW]: writes frames from the first statement of main on and says how many. Then, by
 * HOW: `abort`, `wait` (until stdin is closed), `exec` (the same program, without HOW), `load PATH`
 * (a plugin that writes 10 frames, too), or a number, which is the exit status. */
#define _GNU_SOURCE
#include "flood.h"
#include "pattern.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t written;

static void one(uint64_t n) {
    PPT_WRITE_BEAT(f) {
        fill(&f, 0, n);
        written++;
    }
}

int main(int argc, char **argv) {
    one(0);
    int frames = argc > 1 ? atoi(argv[1]) : 1;
    for (int i = 1; i < frames; i++)
        one((uint64_t)i);
    printf("written %lu\n", (unsigned long)written);
    fflush(stdout);
    const char *how = argc > 2 ? argv[2] : "0";
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "wait") == 0)
        while (getchar() != EOF) {
        }
    else if (strcmp(how, "exec") == 0)
        execl(argv[0], argv[0], argv[1], (char *)0);
#ifndef NO_PLUGIN
    else if (strcmp(how, "load") == 0) {
        void (*write)(int, int) = 0;
        void *handle = dlopen(argv[3], RTLD_NOW | RTLD_LOCAL);
        if (handle == 0)
            return 99;
        *(void **)&write = dlsym(handle, "plugin_write");
        for (int i = 0; i < 10; i++)
            write(0, i);
    }
#endif
    else
        return atoi(how);
    return 0;
}
